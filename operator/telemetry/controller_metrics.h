// Metrics of one controller and its queue, with the names of controller-runtime and client-go, so that existing
// dashboards and alerts for operators work. Thread-safe. Owner: OperatorApp.
#pragma once

#include <string>

#include "common/metrics/metrics.h"
#include "kube/queue/metrics.h"
#include "operator/runtime/controller.h"

namespace medley::ops {

class ReconcileMetrics final : public ControllerMetrics {
 public:
  // `workers`: the most reconciliations at the same time.
  ReconcileMetrics(metrics::Registry& registry, const std::string& controller, int workers);
  void OnStart() override;
  void OnReconcile(Outcome outcome, base::nanoseconds duration) override;
  void OnException() override;

 private:
  metrics::Counter& success_;
  metrics::Counter& requeue_after_;
  metrics::Counter& error_;
  metrics::Counter& errors_;
  metrics::Counter& terminal_errors_;
  metrics::Counter& panics_;
  metrics::Gauge& active_;
  metrics::Histogram& seconds_;
};

class WorkQueueMetrics final : public kube::QueueMetrics {
 public:
  WorkQueueMetrics(metrics::Registry& registry, const std::string& controller);
  void OnAdd() override;
  void OnRetry() override;
  void SetDepth(size_t depth) override;
  void ObserveLatency(std::chrono::nanoseconds latency) override;
  void ObserveWorkDuration(std::chrono::nanoseconds duration) override;
  void SetUnfinished(std::chrono::nanoseconds total) override;
  void SetLongestRunning(std::chrono::nanoseconds longest) override;

 private:
  metrics::Counter& adds_;
  metrics::Counter& retries_;
  metrics::Gauge& depth_;
  metrics::Histogram& latency_;
  metrics::Histogram& work_;
  metrics::Gauge& unfinished_;
  metrics::Gauge& longest_;
};

}  // namespace medley::ops
