// What a running job measured, as the scheduling service wants to hear it. Pure.
#pragma once

#include <optional>
#include <vector>

#include "common/model/observation.h"
#include "operator/planning/observation.h"
#include "operator/records/plan_record.h"

namespace medley::ops {

// True when `seen` describes the record's plan alone and complete: the plan is in force, no generation is being
// prepared, no member is missing and every stage is measured. Only then its measurements may be compared with the
// prediction.
bool IsComparable(const PlanRecord& record, const Observation& seen);

// The observation of a comparable moment; nothing when it is none, when a stage has units of several pools (its mean
// tells of no type), or when the profiles do not fit the plan. `profiles`: one a pool of the plan's stages, as
// measured.
//
// Communication is told for the slowest stage alone, and only where it takes longer than computing: what the others
// report is waiting for that stage, and what is hidden behind computing does not show.
std::optional<model::JobObservation> BuildJobObservation(const TrainingJob& job, const PlanRecord& record,
                                                         const Observation& seen,
                                                         const std::vector<model::Profile>& profiles);

// The names of the pools that the stages run on, each once.
std::vector<std::string> TrainerPools(const PlanRecord& record);

}  // namespace medley::ops
