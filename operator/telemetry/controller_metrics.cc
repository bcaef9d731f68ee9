#include "operator/telemetry/controller_metrics.h"

namespace medley::ops {
namespace {

metrics::Counter& Reconciles(metrics::Registry& registry, const std::string& controller, const char* result) {
  return registry.GetCounter("controller_runtime_reconcile_total", "Reconciliations by their result",
                             {{"controller", controller}, {"result", result}});
}

metrics::Labels QueueLabels(const std::string& controller) {
  return {{"controller", controller}, {"name", controller}};
}

}  // namespace

ReconcileMetrics::ReconcileMetrics(metrics::Registry& registry, const std::string& controller, int workers)
    : success_(Reconciles(registry, controller, "success")),
      requeue_after_(Reconciles(registry, controller, "requeue_after")),
      error_(Reconciles(registry, controller, "error")),
      errors_(registry.GetCounter("controller_runtime_reconcile_errors_total", "Reconciliations that failed",
                                  {{"controller", controller}})),
      terminal_errors_(registry.GetCounter("controller_runtime_terminal_reconcile_errors_total",
                                           "Reconciliations that failed and are not retried",
                                           {{"controller", controller}})),
      panics_(registry.GetCounter("controller_runtime_reconcile_panics_total", "Exceptions thrown by reconcilers",
                                  {{"controller", controller}})),
      active_(registry.GetGauge("controller_runtime_active_workers", "Reconciliations that run now",
                                {{"controller", controller}})),
      seconds_(registry.GetHistogram("controller_runtime_reconcile_time_seconds", "Duration of reconciliations",
                                     metrics::LatencyBounds(), {{"controller", controller}})) {
  registry
      .GetGauge("controller_runtime_max_concurrent_reconciles", "Reconciliations that may run at the same time",
                {{"controller", controller}})
      .Set(workers);
}

void ReconcileMetrics::OnStart() { active_.Add(1); }

void ReconcileMetrics::OnReconcile(Outcome outcome, base::nanoseconds duration) {
  active_.Add(-1);
  seconds_.Observe(base::ToSeconds(duration));
  switch (outcome) {
    case Outcome::kSuccess:
      success_.Increment();
      return;
    case Outcome::kRequeueAfter:
      requeue_after_.Increment();
      return;
    case Outcome::kTerminalError:
      terminal_errors_.Increment();
      break;
    case Outcome::kError:
      break;
  }
  error_.Increment();
  errors_.Increment();
}

void ReconcileMetrics::OnException() { panics_.Increment(); }

WorkQueueMetrics::WorkQueueMetrics(metrics::Registry& registry, const std::string& controller)
    : adds_(registry.GetCounter("workqueue_adds_total", "Keys added to the queue", QueueLabels(controller))),
      retries_(
          registry.GetCounter("workqueue_retries_total", "Keys requeued after a failure", QueueLabels(controller))),
      depth_(registry.GetGauge("workqueue_depth", "Keys that wait in the queue", QueueLabels(controller))),
      latency_(registry.GetHistogram("workqueue_queue_duration_seconds", "How long a key waited in the queue",
                                     metrics::LatencyBounds(), QueueLabels(controller))),
      work_(registry.GetHistogram("workqueue_work_duration_seconds", "How long the reconciliation of a key took",
                                  metrics::LatencyBounds(), QueueLabels(controller))),
      unfinished_(
          registry.GetGauge("workqueue_unfinished_work_seconds",
                            "Time that the reconciliations in progress have taken so far, summed over all workers",
                            QueueLabels(controller))),
      longest_(registry.GetGauge("workqueue_longest_running_processor_seconds",
                                 "Time that the longest reconciliation in progress has taken so far",
                                 QueueLabels(controller))) {}

void WorkQueueMetrics::OnAdd() { adds_.Increment(); }
void WorkQueueMetrics::OnRetry() { retries_.Increment(); }
void WorkQueueMetrics::SetDepth(size_t depth) { depth_.Set(static_cast<double>(depth)); }
void WorkQueueMetrics::ObserveLatency(std::chrono::nanoseconds latency) { latency_.Observe(base::ToSeconds(latency)); }
void WorkQueueMetrics::ObserveWorkDuration(std::chrono::nanoseconds duration) {
  work_.Observe(base::ToSeconds(duration));
}
void WorkQueueMetrics::SetUnfinished(std::chrono::nanoseconds total) { unfinished_.Set(base::ToSeconds(total)); }
void WorkQueueMetrics::SetLongestRunning(std::chrono::nanoseconds longest) { longest_.Set(base::ToSeconds(longest)); }

}  // namespace medley::ops
