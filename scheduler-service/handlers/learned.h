// What the service learns while it runs: corrections of profiles from observations, and named policies. Thread-safe.
#pragma once

#include <absl/status/status.h>

#include <atomic>
#include <stop_token>

#include "common/base/clock.h"
#include "common/metrics/metrics.h"
#include "scheduler-service/handlers/policy_store.h"
#include "scheduler-service/handlers/state_files.h"
#include "scheduler-service/profile/calibration.h"

namespace medley::sched {

class Learned {
 public:
  // `folder`: where it is kept over restarts; empty: nowhere. Borrows the metrics.
  Learned(const std::filesystem::path& folder, metrics::Registry& metrics);

  // Reads what earlier runs kept. Errors: the folder cannot be used.
  absl::Status Open();
  // Saves what changed, and looks for policies, now and then until `stop`.
  void Keep(base::Clock& clock, std::stop_token stop);
  // Writes what has changed since it was written last.
  void Save();

  absl::StatusOr<model::Prediction> Observe(const model::JobObservation& observation);
  const Calibrator& calibrator() const { return calibrator_; }
  const PolicyStore& policies() const { return policies_; }
  // Grows when answers may change.
  uint64_t generation() const { return observed_.load() + policies_.generation(); }

 private:
  const StateFiles files_;
  metrics::Registry& metrics_;
  Calibrator calibrator_;
  PolicyStore policies_;
  std::atomic<uint64_t> observed_{0};
  std::atomic<uint64_t> saved_{0};
};

}  // namespace medley::sched
