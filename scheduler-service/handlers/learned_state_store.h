// What the service learns while it runs: corrections of profiles from observations, policies that go on learning
// from them, and policies that people put there. Thread-safe.
#pragma once

#include <absl/status/status.h>

#include <atomic>
#include <deque>
#include <memory>
#include <stop_token>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/metrics/metrics.h"
#include "scheduler-service/handlers/policy_store.h"
#include "scheduler-service/handlers/state_files.h"
#include "scheduler-service/online/online_learner.h"
#include "scheduler-service/profile/calibration.h"

namespace medley::sched {

class LearnedStateStore {
 public:
  // `folder`: where it is kept over restarts; empty: nowhere. `online`: policies learn from observations. Borrows the
  // metrics.
  LearnedStateStore(const std::filesystem::path& folder, bool online, metrics::Registry& metrics);

  // Reads what earlier runs kept. Errors: the folder cannot be used.
  absl::Status Open();
  // Teaches the policies, saves what changed, and looks for policies, until `stop`.
  void Run(base::Clock& clock, std::stop_token stop);
  // Writes what has changed since it was written last.
  void Save();

  // Corrects at once; policies learn from it later, in Run. The request's prices are to be filled in.
  absl::StatusOr<model::Prediction> Observe(const model::JobObservation& observation);
  // Replaces planner.recurrent.policyName by the policy's bytes: one of policies(), or one that learned online
  // ("online": that of the request's own model). Errors: InvalidArgument naming those there are.
  absl::Status ResolvePolicy(model::PlanRequest& request) const;
  const Calibrator& calibrator() const { return calibrator_; }
  const PolicyStore& policies() const { return policies_; }
  // Grows when answers may change.
  uint64_t version() const { return observed_.load() + trained_.load() + policies_.version(); }

 private:
  static constexpr size_t kMaxPendingObservations = 64;  // the oldest ones are dropped

  void TrainPolicies(std::stop_token stop);
  metrics::Counter& TrainingCounter(const std::string& result);
  metrics::Histogram& ErrorHistogram();
  metrics::Gauge& ModelGauge();

  const StateFiles files_;
  metrics::Registry& metrics_;
  Calibrator calibrator_;
  PolicyStore policies_;
  std::atomic<uint64_t> observed_{0};
  std::atomic<uint64_t> saved_{0};
  const std::unique_ptr<OnlineLearner> learner_;  // null: policies do not learn
  std::atomic<uint64_t> trained_{0};
  std::atomic<uint64_t> trained_saved_{0};
  base::Mutex mutex_;
  base::CondVar pending_changed_;
  std::deque<model::JobObservation> pending_observations_ ABSL_GUARDED_BY(mutex_);  // not learned from yet
};

}  // namespace medley::sched
