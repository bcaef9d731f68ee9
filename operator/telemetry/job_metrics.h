// medley_job_*: one set of series for each job that this operator reconciles. Thread-safe. Owner: OperatorMetrics.
//
// Each scrape is written from the last snapshot of each job, so the series end when the job is deleted. A job has
// about 50 series, 20 of them for its bill, 8 for its conditions and 7 for each stage. Only the operator that
// reconciles (the leader) has snapshots, so sums over replicas of the operator count no job twice.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/metrics/text_page.h"
#include "kube/object.h"
#include "operator/telemetry/job_snapshot.h"

namespace medley::ops {

class JobMetrics {
 public:
  void Set(const kube::Key& job, JobSnapshot snapshot, base::WallTime now);
  // Counts a generation switch. Call it once for each switch.
  void AddSwitch(const kube::Key& job, bool recovery, double pause_seconds, double lost_steps);
  void Remove(const kube::Key& job);
  void Write(metrics::TextPage& page) const;
  struct Totals {
    std::map<std::string, int> jobs;  // by phase
    double usd_per_hour = 0;
  };
  Totals Sum() const;

 private:
  struct Switches {
    double count = 0;
    double pause_seconds = 0;
  };
  struct Entry {
    JobSnapshot seen;
    // The most samples that any snapshot reported. A rollback lowers the job's number of samples, but a counter must
    // not decrease: samples that are trained again do not count again.
    std::optional<double> most_samples;
    std::optional<double> progress_timestamp;  // Unix seconds when most_samples last grew or the job began to run
    Switches rescales;
    Switches recoveries;
    double lost_steps = 0;
  };
  void WriteValues(metrics::TextPage& page) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WriteState(metrics::TextPage& page) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WritePlans(metrics::TextPage& page) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WriteStages(metrics::TextPage& page) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WriteSwitches(metrics::TextPage& page) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable base::Mutex mutex_;
  std::map<kube::Key, Entry> jobs_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace medley::ops
