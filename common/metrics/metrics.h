// Prometheus metrics without Prometheus' headers.
//
//   metrics::Registry registry;
//   metrics::Counter& plans = registry.GetCounter("medley_plans_total", "Plans made", {{"result", "ok"}});
//   plans.Increment();
//   std::string page = registry.Text();
//
// Names follow Prometheus: snake_case, base units, counters end in _total. Everything is thread-safe. The references
// that a registry gives live as long as it does; asking again for the same name and labels gives the same object.
// Asking for a name that is already of another kind, or for an illegal name, is a broken invariant and aborts.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace medley::metrics {

using Labels = std::map<std::string, std::string>;

// Only grows.
class Counter {
 public:
  virtual ~Counter() = default;
  virtual void Increment(double by = 1) = 0;  // by >= 0
  virtual double Value() const = 0;
};

// Goes up and down.
class Gauge {
 public:
  virtual ~Gauge() = default;
  virtual void Set(double value) = 0;
  virtual void Add(double by) = 0;
  virtual double Value() const = 0;
};

// Counts observations by size.
class Histogram {
 public:
  virtual ~Histogram() = default;
  virtual void Observe(double value) = 0;
};

class Registry {
 public:
  Registry();
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  Counter& GetCounter(const std::string& name, const std::string& help, const Labels& labels = {});
  Gauge& GetGauge(const std::string& name, const std::string& help, const Labels& labels = {});
  // `bounds`: upper bounds of the buckets, ascending, without infinity. The first call for a name and labels decides.
  Histogram& GetHistogram(const std::string& name, const std::string& help, const std::vector<double>& bounds,
                          const Labels& labels = {});
  // Takes a gauge's series away, for objects that are gone; its reference is dead from then on. Unknown: no effect.
  void RemoveGauge(const std::string& name, const Labels& labels);

  // Text exposition format 0.0.4 (Content-Type: kTextContentType).
  std::string Text() const;

 private:
  struct Rep;
  const std::unique_ptr<Rep> rep_;
};

inline constexpr char kTextContentType[] = "text/plain; version=0.0.4; charset=utf-8";

// Seconds from 1 ms to 60 s, for latencies.
std::vector<double> LatencyBounds();

}  // namespace medley::metrics
