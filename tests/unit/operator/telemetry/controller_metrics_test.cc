#include "operator/telemetry/controller_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace medley::ops {
namespace {

using testing::HasSubstr;

TEST(ReconcileMetricsTest, CountsLikeControllerRuntime) {
  metrics::Registry registry;
  ReconcileMetrics metrics(registry, "trainingjob", 4);
  const auto run = [&](ControllerMetrics::Outcome outcome) {
    metrics.OnStart();
    EXPECT_THAT(registry.Text(), HasSubstr("controller_runtime_active_workers{controller=\"trainingjob\"} 1\n"));
    metrics.OnReconcile(outcome, base::milliseconds(20));
  };
  run(ControllerMetrics::Outcome::kSuccess);
  run(ControllerMetrics::Outcome::kRequeueAfter);
  run(ControllerMetrics::Outcome::kRequeueAfter);
  run(ControllerMetrics::Outcome::kError);
  run(ControllerMetrics::Outcome::kTerminalError);
  metrics.OnException();
  const std::string page = registry.Text();
  for (const char* line : {"reconcile_total{controller=\"trainingjob\",result=\"success\"} 1\n",
                           "reconcile_total{controller=\"trainingjob\",result=\"requeue_after\"} 2\n",
                           "reconcile_total{controller=\"trainingjob\",result=\"error\"} 2\n",
                           "controller_runtime_reconcile_errors_total{controller=\"trainingjob\"} 2\n",
                           "controller_runtime_terminal_reconcile_errors_total{controller=\"trainingjob\"} 1\n",
                           "controller_runtime_reconcile_panics_total{controller=\"trainingjob\"} 1\n",
                           "controller_runtime_active_workers{controller=\"trainingjob\"} 0\n",
                           "controller_runtime_max_concurrent_reconciles{controller=\"trainingjob\"} 4\n",
                           "controller_runtime_reconcile_time_seconds_count{controller=\"trainingjob\"} 5\n"}) {
    EXPECT_THAT(page, HasSubstr(line));
  }
}

TEST(WorkQueueMetricsTest, CountsLikeClientGo) {
  metrics::Registry registry;
  WorkQueueMetrics metrics(registry, "trainingjob");
  metrics.OnAdd();
  metrics.OnAdd();
  metrics.OnRetry();
  metrics.SetDepth(2);
  metrics.ObserveLatency(base::milliseconds(30));
  metrics.ObserveWorkDuration(base::milliseconds(300));
  metrics.SetUnfinished(base::seconds(3));
  metrics.SetLongestRunning(base::seconds(2));
  const std::string page = registry.Text();
  const std::string labels = "{controller=\"trainingjob\",name=\"trainingjob\"} ";
  for (const std::string& line :
       {"workqueue_adds_total" + labels + "2\n", "workqueue_retries_total" + labels + "1\n",
        "workqueue_depth" + labels + "2\n", "workqueue_queue_duration_seconds_count" + labels + "1\n",
        "workqueue_work_duration_seconds_sum" + labels + "0.3\n", "workqueue_unfinished_work_seconds" + labels + "3\n",
        "workqueue_longest_running_processor_seconds" + labels + "2\n"}) {
    EXPECT_THAT(page, HasSubstr(line));
  }
}

}  // namespace
}  // namespace medley::ops
