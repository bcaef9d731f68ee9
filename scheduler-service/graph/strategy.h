// What HeteroG decides for each group of operations, and the execution plan that it means (sections 3.4 and 4.1.2).
// Pure.
//
// An action is one of M + 4 for M devices: one device, or replicas on all devices, each with the same part of the batch
// or with a part by its computing power, whose gradients are added by one of them ("PS") or by allreduce ("AR").
#pragma once

#include <absl/status/statusor.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "common/model/forward.h"
#include "scheduler-service/devices/problem.h"
#include "scheduler-service/graph/grouping.h"

namespace medley::sched {

// After the devices, in the order of the paper's action vector.
enum class Replicas { kEvenServer, kEvenAllreduce, kProportionalServer, kProportionalAllreduce };
inline constexpr int kReplicaActions = 4;

inline int ActionCount(const DeviceProblem& problem) { return problem.devices() + kReplicaActions; }
inline int ActionOf(const DeviceProblem& problem, Replicas how) { return problem.devices() + static_cast<int>(how); }
inline bool IsReplicated(const DeviceProblem& problem, int action) { return action >= problem.devices(); }
// "v100-0" (a device's id), or EV-PS, EV-AR, CP-PS, CP-AR as in the paper.
std::string ActionName(const DeviceProblem& problem, int action);

// For the operations: as in the model, backward reversed, and micro-batches as the schedule says; as they become ready
// (the paper's FIFO); by upward rank; repaired (simulate/rank.h).
enum class OrderBy { kModel, kReady, kRank, kRepaired };
inline constexpr std::array kOrders = {OrderBy::kModel, OrderBy::kReady, OrderBy::kRank, OrderBy::kRepaired};
// "by rank", ...
std::string OrderName(OrderBy order);

struct GraphStrategy {
  std::vector<int> actions;  // by group
  // Gradients of neighbouring operations are reduced together up to this size; 0: without limit.
  int64_t bucket_bytes = 0;
  OrderBy order = OrderBy::kRank;
  // Shares of replicas in proportion, by device, at least 1; empty: ReplicaCounts.
  std::vector<int> counts = {};
  auto operator<=>(const GraphStrategy&) const = default;
};

// Replicas that a device gets in the proportional actions: its power in units of the slowest device's, as a whole
// number and at least 1. Power is the inverse of the seconds of the whole model.
std::vector<int> ReplicaCounts(const DeviceProblem& problem);

// The strategy that stands for all with the same plan: groups without parameters have no server, and proportional
// replicas are even where every device gets one.
GraphStrategy Canonical(const DeviceProblem& problem, const OperationGroups& groups, GraphStrategy strategy);

// The plan of the canonical strategy. The server of a group is the device that ends its reduction first, after what it
// serves already, of equal ones the first. An allreduce is a ring over all replicas, or rings within machines and one
// between them, whichever is faster. An operation with embedding rows, which plans of this goal keep on one device, is
// on the fastest one where its group is replicated. Errors: those of RankOrder and FifoOrder.
absl::StatusOr<model::ExecutionPlan> BuildGraphPlan(const DeviceProblem& problem, const OperationGroups& groups,
                                                    const GraphStrategy& strategy);

}  // namespace medley::sched
