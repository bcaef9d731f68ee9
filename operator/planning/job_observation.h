// Builds from a running job's measurements the observation that the scheduling service learns from. Pure.
#pragma once

#include <optional>
#include <vector>

#include "common/model/observation.h"
#include "operator/planning/observation.h"
#include "operator/records/plan_record.h"

namespace medley::ops {

// True when the measurements in `seen` can be compared with the predictions for the record's plan: the job trains by
// this plan, no generation is being prepared, no member is missing, and every stage has been measured.
bool IsComparable(const PlanRecord& record, const Observation& seen);

// Returns nullopt when the measurements are not comparable, when a stage has units of several pools (the mean over
// unlike machines describes none of them), or when the profiles do not fit the plan. `profiles`: the measured profile
// of each pool of the plan's stages.
//
// Reports communication time only for the slowest stage, and only when it exceeds the compute time. The other stages'
// communication time is mostly waiting for the slowest stage, and communication that overlaps with computation does not
// change the throughput.
std::optional<model::JobObservation> BuildJobObservation(const TrainingJob& job, const PlanRecord& record,
                                                         const Observation& seen,
                                                         const std::vector<model::Profile>& profiles);

// The names of the pools that the stages run on, without duplicates.
std::vector<std::string> TrainerPools(const PlanRecord& record);

}  // namespace medley::ops
