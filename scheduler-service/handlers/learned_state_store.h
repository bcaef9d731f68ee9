// The state that the service learns while it runs, saved across restarts: corrections of profiles and policies that are
// trained on observations. Also gives access to policies that users placed in the state directory. Thread-safe.
#pragma once

#include <absl/status/status.h>

#include <atomic>
#include <deque>
#include <memory>
#include <set>
#include <stop_token>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/metrics/metrics.h"
#include "common/model/forward.h"
#include "common/model/prediction.h"
#include "scheduler-service/handlers/policy_store.h"
#include "scheduler-service/handlers/state_files.h"
#include "scheduler-service/online/online_learner.h"
#include "scheduler-service/profile/calibration.h"

namespace medley::sched {

class LearnedStateStore {
 public:
  // `folder` is the state directory; empty: nothing is saved. `online`: train policies on observations. Borrows the
  // metrics.
  LearnedStateStore(const std::filesystem::path& folder, bool online, metrics::Registry& metrics);
  ~LearnedStateStore();

  // Restores the saved state. Errors: the folder cannot be created or written to. A damaged file is not an error.
  absl::Status Open();
  // Trains policies on pending observations, and every 5 s saves changed state and rescans the policy files, until
  // `stop`.
  void Run(base::Clock& clock, std::stop_token stop);
  // Saves the state that has changed since the last Save.
  void Save();

  // What an observation has changed.
  struct Learned {
    model::Prediction prediction;
    // Why no policy is trained on it: "disabled" or one of OnlineLearner::kRefusals, and a sentence. Empty: queued.
    std::string refusal;
    std::string message;
  };
  // Updates the corrections at once and queues the observation for training in Run. The prices of the observation's
  // request must be filled in. `tenant`: who reports it. Errors: those of Calibrator::Observe. The first refusal of
  // training with each reason is logged as a warning, and all are counted.
  absl::StatusOr<Learned> Observe(const model::JobObservation& observation, std::string_view tenant);
  // Replaces planner.policy.name by the bytes of that policy: one of policies(), or one that was trained online on
  // observations of the tenant ("online" is the one for the request's model). A request for rl-lstm that names no
  // policy and sets no options goes on with the online one, if it knows all resources of the request. Errors:
  // InvalidArgument listing the known names.
  absl::Status ResolvePolicy(model::PlanRequest& request, std::string_view tenant) const;
  const Calibrator& calibrator() const { return calibrator_; }
  const PolicyStore& policies() const { return policies_; }
  // Grows when responses may change.
  uint64_t version() const { return observed_.load() + trained_.load() + policies_.version(); }

 private:
  static constexpr size_t kMaxPendingObservations = 64;  // if there are more, the oldest ones are dropped

  void TrainPolicies(std::stop_token stop);
  metrics::Counter& TrainingCounter(const std::string& result);
  metrics::Counter& RejectionCounter(const std::string& reason);
  void CountRejection(const std::string& reason, const absl::Status& status);
  metrics::Histogram& ErrorHistogram();
  metrics::Gauge& ModelGauge();

  const StateFiles files_;
  metrics::Registry& metrics_;
  Calibrator calibrator_;
  PolicyStore policies_;
  std::atomic<uint64_t> observed_{0};
  std::atomic<uint64_t> saved_{0};
  const std::unique_ptr<OnlineLearner> learner_;  // null if online training is disabled
  std::atomic<uint64_t> trained_{0};
  std::atomic<uint64_t> trained_saved_{0};
  base::Mutex mutex_;
  base::CondVar pending_changed_;
  struct Pending;                                         // an observation and its tenant
  std::set<std::string> warned_ ABSL_GUARDED_BY(mutex_);  // reasons of rejections
  std::deque<std::unique_ptr<const Pending>> pending_observations_ ABSL_GUARDED_BY(mutex_);  // not learned from yet
};

}  // namespace medley::sched
