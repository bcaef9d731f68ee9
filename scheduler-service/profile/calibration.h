// Calibration: what running jobs measure corrects the profiles that later plans of the same model are made from.
//
// Per model (its layers, not its profiles) and resource type, over a bounded window of observations, measured stage
// seconds are regressed on predicted ones. A profile splits a stage's cost into a part that stays, S, and a part that
// divides, D; for k units and b samples a step, B being the profile's batch,
//   predicted = S + D * (b / B) / k,     measured ~ s * S + d * D * (b / B) / k
// s and d come from iteratively reweighted least squares on relative residuals (Tukey's biweight, scale from the
// median absolute deviation), begun at the median ratio; where k and b vary too little to tell them apart, s = d. What
// then remains between measured and predicted throughput (pipeline bubbles, imperfect overlap) is one factor of the
// model for all types, so that a bias that all types share is no reason to move; types that were never observed take
// the model's median factor for the same reason.
//
// A correction is made from 3 observations on, and only where it predicts the observations better when each is left
// out than no correction does. Factors are clamped to [1/10, 10]. All methods are thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/model/observation.h"
#include "common/model/planning.h"

namespace medley::sched {

class Calibrator {
 public:
  struct Options {
    int max_models = 256;  // the one that was used longest ago is forgotten
    int max_types = 64;    // series of a model: a resource type with its profile, likewise
    int window = 48;       // newest observations of a series that count
    int min_observations = 3;
    double max_factor = 10;
  };
  Calibrator();
  explicit Calibrator(const Options& options);
  ~Calibrator();
  Calibrator(const Calibrator&) = delete;
  Calibrator& operator=(const Calibrator&) = delete;

  // Remembers the observation; the answer is the state after it. Observations are to come from requests with the
  // profiles as measured or estimated (origin "calibrated" is refused: they would be corrected twice). Errors:
  // InvalidArgument naming the field; nothing is remembered then.
  absl::StatusOr<model::Prediction> Observe(const model::JobObservation& observation);

  // Multiplies the request's profiles by the corrections known for its model and sets their origin to "calibrated";
  // profiles that are of this origin already stay. Nothing observed of this model: nullopt, the request unchanged.
  std::optional<model::Prediction> Correct(model::PlanRequest& request) const;

  // What Correct would report, without correcting.
  std::optional<model::Prediction> Find(const model::PlanRequest& request) const;

  int models() const;

  // Everything remembered, for a file of the caller's; the format has a version. Load replaces what is there. Errors:
  // DataLoss for bytes that Save did not write; the state is unchanged then.
  std::string Save() const;
  absl::Status Load(std::string_view bytes);

 private:
  struct State;
  const Options options_;
  const std::unique_ptr<State> state_;
};

}  // namespace medley::sched
