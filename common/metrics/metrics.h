// Prometheus metrics without Prometheus' headers.
//
//   metrics::Registry registry;
//   metrics::Counter& plans = registry.GetCounter("medley_plans_total", "Plans made", {{"result", "ok"}});
//   plans.Increment();
//   std::string page = registry.Text();
//
// Names follow Prometheus' rules: snake_case, base units, counters end in _total. Everything is thread-safe. References
// to metrics are valid as long as the registry; a second request for the same name and labels returns the same metric.
// Requesting an illegal name, or a name that has another kind, breaks an invariant and aborts the process.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace medley::metrics {

using Labels = std::map<std::string, std::string>;

// A value that only grows.
class Counter {
 public:
  virtual ~Counter() = default;
  virtual void Increment(double by = 1) = 0;  // by >= 0
  virtual double Value() const = 0;
};

// A value that can grow and shrink.
class Gauge {
 public:
  virtual ~Gauge() = default;
  virtual void Set(double value) = 0;
  virtual void Add(double by) = 0;
  virtual double Value() const = 0;
};

// Counts observations per bucket.
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
  // `bounds`: ascending upper bounds of the buckets, without infinity. The first call for a name and labels sets them.
  Histogram& GetHistogram(const std::string& name, const std::string& help, const std::vector<double>& bounds,
                          const Labels& labels = {});
  // Removes a gauge's series when its object has been deleted; references to it become invalid. Ignores unknown gauges.
  void RemoveGauge(const std::string& name, const Labels& labels);

  // The page in text exposition format 0.0.4 (Content-Type: kTextContentType).
  std::string Text() const;

 private:
  struct Rep;
  const std::unique_ptr<Rep> rep_;
};

inline constexpr char kTextContentType[] = "text/plain; version=0.0.4; charset=utf-8";

// Bucket bounds for latencies: 1 ms to 60 s, in seconds.
std::vector<double> LatencyBounds();

}  // namespace medley::metrics
