// What a running job measured, as the scheduling service takes it. Pure.
#pragma once

#include <optional>
#include <vector>

#include "common/model/forward.h"
#include "operator/records/observation.h"
#include "operator/records/plan_record.h"

namespace medley::ops {

// True while the job runs the record's plan, whole and undisturbed: the plan is in force, no generation is being
// prepared, no member is missing, and every stage was measured. Its measurements may then be compared with predictions.
bool IsComparable(const PlanRecord& record, const Observation& seen);

// Builds the observation. nullopt when the moment is not comparable, a stage has units of several pools (so its mean
// describes no pool), or the profiles do not fit the plan. `profiles`: one for each pool of the plan's stages, as
// measured.
//
// Communication is reported for the slowest stage only, and only where it takes longer than computing: what the other
// stages measure is the wait for that stage, and communication behind computing does not show.
std::optional<model::JobObservation> BuildJobObservation(const TrainingJob& job, const PlanRecord& record,
                                                         const Observation& seen,
                                                         const std::vector<model::Profile>& profiles);

// The names of the pools that the stages run on, each once.
std::vector<std::string> TrainerPools(const PlanRecord& record);

}  // namespace medley::ops
