#include "common/metrics/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <stdexcept>
#include <utility>

#include "common/base/mutex.h"
#include "common/base/status.h"

namespace medley::metrics {
namespace {

class CounterImpl final : public Counter {
 public:
  explicit CounterImpl(prometheus::Counter& counter) : counter_(counter) {}
  void Increment(double by) override { counter_.Increment(by); }
  double Value() const override { return counter_.Value(); }

 private:
  prometheus::Counter& counter_;
};

class GaugeImpl final : public Gauge {
 public:
  explicit GaugeImpl(prometheus::Gauge& gauge) : gauge_(gauge) {}
  void Set(double value) override { gauge_.Set(value); }
  void Add(double by) override { gauge_.Increment(by); }
  double Value() const override { return gauge_.Value(); }
  prometheus::Gauge* raw() { return &gauge_; }

 private:
  prometheus::Gauge& gauge_;
};

class HistogramImpl final : public Histogram {
 public:
  explicit HistogramImpl(prometheus::Histogram& histogram) : histogram_(histogram) {}
  void Observe(double value) override { histogram_.Observe(value); }

 private:
  prometheus::Histogram& histogram_;
};

using Key = std::pair<std::string, Labels>;

}  // namespace

struct Registry::Rep {
  prometheus::Registry registry;
  base::Mutex mutex;
  std::map<Key, std::unique_ptr<CounterImpl>> counters ABSL_GUARDED_BY(mutex);
  std::map<Key, std::unique_ptr<GaugeImpl>> gauges ABSL_GUARDED_BY(mutex);
  std::map<Key, std::unique_ptr<HistogramImpl>> histograms ABSL_GUARDED_BY(mutex);
  std::map<std::string, prometheus::Family<prometheus::Gauge>*> gauge_families ABSL_GUARDED_BY(mutex);
};

namespace {

// prometheus-cpp throws if a name is illegal or already belongs to a metric of another kind.
template <typename Make>
auto& Checked(const std::string& name, Make make) {
  try {
    return make();
  } catch (const std::invalid_argument& error) {
    base::CheckFailed(__FILE__, __LINE__, name.c_str(), error.what());
  }
}

}  // namespace

Registry::Registry() : rep_(std::make_unique<Rep>()) {}
Registry::~Registry() = default;

Counter& Registry::GetCounter(const std::string& name, const std::string& help, const Labels& labels) {
  base::MutexLock lock(rep_->mutex);
  auto& slot = rep_->counters[{name, labels}];
  if (slot == nullptr) {
    auto& raw = Checked(name, [&]() -> prometheus::Counter& {
      return prometheus::BuildCounter().Name(name).Help(help).Register(rep_->registry).Add(labels);
    });
    slot = std::make_unique<CounterImpl>(raw);
  }
  return *slot;
}

Gauge& Registry::GetGauge(const std::string& name, const std::string& help, const Labels& labels) {
  base::MutexLock lock(rep_->mutex);
  auto& slot = rep_->gauges[{name, labels}];
  if (slot == nullptr) {
    auto& family = Checked(name, [&]() -> prometheus::Family<prometheus::Gauge>& {
      return prometheus::BuildGauge().Name(name).Help(help).Register(rep_->registry);
    });
    rep_->gauge_families[name] = &family;
    auto& raw = Checked(name, [&]() -> prometheus::Gauge& { return family.Add(labels); });
    slot = std::make_unique<GaugeImpl>(raw);
  }
  return *slot;
}

Histogram& Registry::GetHistogram(const std::string& name, const std::string& help, const std::vector<double>& bounds,
                                  const Labels& labels) {
  base::MutexLock lock(rep_->mutex);
  auto& slot = rep_->histograms[{name, labels}];
  if (slot == nullptr) {
    auto& raw = Checked(name, [&]() -> prometheus::Histogram& {
      return prometheus::BuildHistogram()
          .Name(name)
          .Help(help)
          .Register(rep_->registry)
          .Add(labels, prometheus::Histogram::BucketBoundaries(bounds));
    });
    slot = std::make_unique<HistogramImpl>(raw);
  }
  return *slot;
}

void Registry::RemoveGauge(const std::string& name, const Labels& labels) {
  base::MutexLock lock(rep_->mutex);
  const auto found = rep_->gauges.find({name, labels});
  if (found == rep_->gauges.end()) return;
  rep_->gauge_families.at(name)->Remove(found->second->raw());
  rep_->gauges.erase(found);
}

std::string Registry::Text() const { return prometheus::TextSerializer().Serialize(rep_->registry.Collect()); }

std::vector<double> LatencyBounds() {
  return {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60};
}

}  // namespace medley::metrics
