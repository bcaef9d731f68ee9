// What a running job measured, as the scheduling service takes it. Pure.
#pragma once

#include <optional>
#include <vector>

#include "common/model/forward.h"
#include "operator/records/observation.h"
#include "operator/records/plan_record.h"
#include "operator/records/plan_request.h"

namespace medley::ops {

// True while the job runs the record's plan, whole and undisturbed: the plan is in force, no generation is being
// prepared, no member is missing, and every stage was measured. Its measurements may then be compared with predictions.
bool IsComparable(const PlanRecord& record, const Observation& seen);

// What the job may run on now, and what it has left to do.
struct Alternatives {
  // As measured: one for each pool of the plan's stages, and further ones of pools in `offers`.
  std::vector<model::Profile> profiles;
  std::vector<PoolOffer> offers;
  JobProgress progress;
};

// Builds the observation. nullopt when the moment is not comparable, a stage has units of several pools (so its mean
// describes no pool), the profiles do not fit the plan, or there are no offers.
//
// Its request is the question that the job would be planned with now, so that policies can be trained on it: with the
// prices and limits of the pools, and with profiles that no measurement of the job has changed. A pool of the plan that
// is not offered any more has the price of the plan and the units that the job holds.
//
// Communication is reported for the slowest stage only, and only where it takes longer than computing: what the other
// stages measure is the wait for that stage, and communication behind computing does not show.
std::optional<model::JobObservation> BuildJobObservation(const TrainingJob& job, const PlanRecord& record,
                                                         const Observation& seen, const Alternatives& alternatives);

// The names of the pools that the stages run on, each once.
std::vector<std::string> TrainerPools(const PlanRecord& record);

}  // namespace medley::ops
