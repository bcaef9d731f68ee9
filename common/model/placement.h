// Checks of what a plan places on devices. Pure functions; execution_plan.h documents the fields.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/model/execution_plan.h"
#include "common/model/operation_range.h"
#include "common/model/order_entry.h"
#include "common/model/sync.h"

namespace medley::model {

// The id of a device that a plan with stages implies: unit `index` of the pool, counted over all stages.
std::string StageDeviceId(const std::string& pool, int index);

// How these replicas agree: root, levels, numbers of the mode. Errors: InvalidArgument naming the field behind `path`.
absl::Status CheckSync(const Sync& sync, const std::set<std::string>& replicas, const std::string& path);

// A range that is not empty, of a model with `operations` operations.
absl::Status CheckRange(const OperationRange& range, int operations, const std::string& path);

// At most kMaxUnits units in all, servers included: whoever reads a plan may make a device of each. Errors:
// InvalidArgument naming the field at which there are too many.
inline constexpr int64_t kMaxUnits = 100'000;
inline constexpr int kMaxMicroBatches = 1 << 16;
absl::Status CheckUnits(const ExecutionPlan& plan);

// CheckUnits, and CheckSync of every synchronisation of the plan's stages.
absl::Status CheckStageSyncs(const ExecutionPlan& plan);

// Devices, replicas, roots and levels of a plan with placements; not which operations are placed. Errors:
// InvalidArgument naming the field.
absl::Status CheckPlaced(const ExecutionPlan& plan);

// The operations that each trainer runs, in the order in which a program numbers devices: stage by stage and group by
// group, or as ExecutionPlan::devices. The plan has at most kMaxUnits (CheckUnits).
std::vector<std::vector<OperationRange>> OperationsByDevice(const ExecutionPlan& plan);

// How many trainers each pool has.
std::map<std::string, int> TrainersByPool(const ExecutionPlan& plan);

// How the replicas of each stage's entries, or of each placement, agree.
std::vector<Sync> SyncsOf(const ExecutionPlan& plan);

// Nothing appears twice, and either all forward and backward passes of operations [0, layers) appear or none. Errors:
// InvalidArgument naming the entry.
absl::Status CheckOrder(const std::vector<OrderEntry>& order, int layers);

}  // namespace medley::model
