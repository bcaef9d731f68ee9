// Calibration: corrects the profiles of a model with the measurements of its running jobs, for later plans of that
// model.
//
// For each model (identified by its layers, not by its profiles) and resource type, a regression over a bounded window
// of observations relates measured stage times to predicted ones. A profile splits the cost of a stage into a serial
// part S and a part D that divides by units. For k units and b samples per step, with the profile's batch size B,
//   predicted = S + D * (b / B) / k,     measured ~ s * S + d * D * (b / B) / k.
// The factors s and d come from iteratively reweighted least squares on relative residuals (Tukey's biweight, scale
// from the median absolute deviation), starting at the median ratio. If k and b vary too little to distinguish the
// factors, s = d. The remaining difference between measured and predicted throughput (pipeline bubbles, imperfect
// overlap) becomes one factor of the model for all types. So an error that all types share is no reason to move a job
// to another type. For the same reason, types without observations get the model's median factor. A single type cannot
// say whether its error is shared, so what others get of it is within [1/1.25, 1.25]: a job whose pool is much slower
// than its profile may move to another pool, and what it measures there is known from then on.
//
// Observations are kept for each tenant and job apart, and whoever reports affects others within bounds:
// - A tenant's plans use the observations of its own jobs. Where jobs disagree, the middle one counts, and of an
//   even number the one of the two middle ones that corrects less, so one job that reports nonsense loses against one
//   that does not.
// - A tenant without observations of the model gets the middle correction of at least 3 other tenants, each of which
//   counts once however much it reports; and its factors are clamped to [1/2, 2].
//
// A correction needs at least 3 observations. It is used only if it predicts observations that were left out of the fit
// better than the uncorrected profile does. Factors are clamped to [1/10, 10]. All methods are thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/model/forward.h"

namespace medley::sched {

class Calibrator {
 public:
  struct Options {
    // Models, counted for each tenant and job; if there are more, the least recently used one of the tenant that has
    // the most is dropped.
    int max_models = 512;
    int max_jobs = 8;    // of a tenant, for each model; likewise
    int max_types = 64;  // series (resource type and profile) per model; if there are more, old steps are dropped
    int window = 48;     // number of newest observations of a series that are used
    int min_observations = 3;
    double max_factor = 10;
    int min_tenants = 3;     // whose observations are used for others
    double max_foreign = 2;  // like max_factor, for corrections from other tenants
  };
  Calibrator();
  explicit Calibrator(const Options& options);
  ~Calibrator();
  Calibrator(const Calibrator&) = delete;
  Calibrator& operator=(const Calibrator&) = delete;

  // Adds an observation and returns the updated prediction. The profiles in its request must be measured or estimated;
  // origin "calibrated" is rejected, because they would be corrected twice. Errors: InvalidArgument naming the field;
  // then the state is unchanged.
  // `tenant`: who reports it, as authenticated.
  absl::StatusOr<model::Prediction> Observe(const model::JobObservation& observation, std::string_view tenant = "");

  // Multiplies the request's profiles by the corrections of its model and sets their origin to "calibrated". Profiles
  // that already have this origin stay unchanged. Without observations of the model that `tenant` may use,
  // returns nullopt and changes nothing.
  std::optional<model::Prediction> Correct(model::PlanRequest& request, std::string_view tenant = "") const;

  // Returns what Correct would return, without changing the request.
  std::optional<model::Prediction> Find(const model::PlanRequest& request, std::string_view tenant = "") const;

  int models() const;  // counted for each tenant and job

  // The whole state as bytes, in a versioned format. Load replaces the state. Errors: DataLoss for bytes that Save did
  // not write; then the state is unchanged.
  std::string Save() const;
  absl::Status Load(std::string_view bytes);

 private:
  struct State;
  const Options options_;
  const std::unique_ptr<State> state_;
};

}  // namespace medley::sched
