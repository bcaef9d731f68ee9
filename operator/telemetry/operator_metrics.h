// The operator's metrics; docs/operate/metrics.md lists them. Thread-safe. Owner: OperatorApp.
//
// Only medley_job_* (see JobMetrics) has names of jobs as labels.
#pragma once

#include <map>
#include <string>

#include "common/metrics/metrics.h"
#include "operator/telemetry/job_metrics.h"

namespace medley::ops {

class OperatorMetrics {
 public:
  explicit OperatorMetrics(metrics::Registry& registry);

  JobMetrics& jobs() { return jobs_; }
  // True when this operator reconciles, false when it stands by. Before the first call the metric says true.
  void SetLeader(bool leader);
  // Whether the stream of prices from the scheduling service is connected, and the last catalog revision received.
  void SetScheduler(bool connected, int64_t catalog_revision);
  // `result`: accepted, infeasible, refused, unavailable.
  void CountPlan(const std::string& result);
  // `decision`: the reason of the MoveDecision.
  void CountReplan(const std::string& decision);
  void ObserveSwitch(const kube::Key& job, bool recovery, double pause_seconds, double lost_steps);
  void CountRestart();
  void AddSpent(double usd);
  void CountCreatedPods(int pods);
  void CountStatusWrite();
  // `result`: accepted, refused, unavailable, dropped. True: the first of the result.
  bool CountObservation(const std::string& result);
  // For the model of the last observation: measured over predicted throughput before and after correction, and the
  // relative error after correction.
  void SetPrediction(double ratio_uncorrected, double ratio_corrected, double relative_error);
  // The number of cached objects of a resource.
  void SetCached(const std::string& resource, size_t objects);
  struct Pool {
    double usd_per_unit_hour = 0;  // 0: not known
    int limit = 0;
    int capacity = 0;
    int used = 0;
    int free = 0;
  };
  void SetPool(const std::string& pool, const Pool& values);
  void RemovePool(const std::string& pool);

  // The page of a scrape: the metrics of the registry, of the jobs and of the process.
  std::string Text();

 private:
  void CountJobs();  // sets the phases without jobs to 0

  metrics::Registry& registry_;
  JobMetrics jobs_;
};

}  // namespace medley::ops
