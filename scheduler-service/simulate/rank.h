// Orders the operations of a plan by upward rank (HeteroG, order scheduling), the length of the longest path of
// computations and transfers from the start of an operation's pass to the end of the step, or as they become ready.
// Pure.
#pragma once

#include <absl/status/statusor.h>

#include <vector>

#include "common/model/forward.h"
#include "scheduler-service/simulate/from_profile.h"

namespace medley::sched {

// ExecutionPlan::order for `plan`: passes by falling rank, of equal ranks those before others in the model first; each
// reduction just behind the pass that completes its gradients. `links`: between single devices, over which a reduction
// counts as one among all replicas, without groups; null: transfers and reductions take what the profile says of them.
// Errors: those of program::Lower; InvalidArgument as DurationsFromProfile, or for a device that `links` does not know.
absl::StatusOr<std::vector<model::OrderEntry>> RankOrder(const model::ExecutionPlan& plan,
                                                         const model::Profile& profile, int samples,
                                                         const DeviceLinks* links = nullptr);

// The most passes of single replicas that the next two order: more than any search simulates.
inline constexpr int64_t kMostOrderedPasses = 1'000'000;

// The order in which a free device takes the passes that are ready, first in, first out, as TensorFlow does (HeteroG,
// section 5); of those that become ready together, forward passes as in the model and backward passes the other way
// round. Reductions as in RankOrder. Micro-batches and reductions count nothing; messages count with `links`. Errors as
// RankOrder, and InvalidArgument for more than kMostOrderedPasses.
absl::StatusOr<std::vector<model::OrderEntry>> FifoOrder(const model::ExecutionPlan& plan,
                                                         const model::Profile& profile, int samples,
                                                         const DeviceLinks* links = nullptr);

// The better of FifoOrder and the order by rank of the same passes, after RepairOrder (list_schedule.h) with about 10
// ms for each. Errors as FifoOrder.
absl::StatusOr<std::vector<model::OrderEntry>> RepairedOrder(const model::ExecutionPlan& plan,
                                                             const model::Profile& profile, int samples,
                                                             const DeviceLinks* links = nullptr);

}  // namespace medley::sched
