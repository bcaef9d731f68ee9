// Feedback: measurements of the running job for the scheduling service, so that its predictions improve, and whether
// they differ so much from what the plan promised that the job should be planned again.
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
  int differing = 0;    // observations in a row of comparable_generation that differ from what the plan promised
  int consider_at = 4;  // so many of them are a reason to plan again
};

// Best effort: nothing that is missing here affects the job.
absl::Status OfferMeasurements(Pass& pass, const TrainingJob& job);

// True when the job has measured 15 % more or less than its plan promised for so long that the scheduling service has
// corrected its predictions by that: four observations, and when another plan was considered, twice as many as then.
bool DiffersFromPromise(const Pass& pass);
void NotePromiseConsidered(Pass& pass);

}  // namespace medley::ops::lifecycle
