// Feedback: measurements of the running job for the scheduling service, so that its predictions improve.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <optional>

#include "common/base/clock.h"
#include "operator/api/training_job.h"

namespace medley::ops::lifecycle {

class Pass;

struct FeedbackState {
  static constexpr char kOwner[] = "feedback";
  // The generation that has trained undisturbed, and since when.
  int64_t comparable_generation = 0;
  base::SteadyTime comparable_since{};
  std::optional<base::SteadyTime> offered_at;
};

// Best effort: nothing that is missing here affects the job.
absl::Status OfferMeasurements(Pass& pass, const TrainingJob& job);

}  // namespace medley::ops::lifecycle
