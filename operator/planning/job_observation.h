// What a running job measured, as the scheduling service wants to hear it. Pure.
#pragma once

#include <optional>
#include <vector>

#include "common/model/observation.h"
#include "operator/planning/observation.h"
#include "operator/records/plan_record.h"

namespace medley::ops {

// True while `seen` tells of the record's plan alone, whole and training: in force, no generation being prepared, nobody
// missing, every stage measured. What it measures then may be compared with what was predicted.
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
