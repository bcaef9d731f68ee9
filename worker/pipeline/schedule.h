// The order in which one stage works on the micro-batches of a step. Pure.
//
//   1F1B (PipeDream-Flush, Narayanan et al. 2021): stage i of n runs min(n - i - 1, M) forward passes, then a forward
//         and a backward pass in turn, then the remaining backward passes. At most n - i micro-batches are in flight.
//   GPipe (Huang et al. 2019): all forward passes, then all backward passes.
//
// M is the number of micro-batches. Both are synchronous: one update after the last backward pass.
#pragma once

#include <vector>

#include "common/model/execution_plan.h"

namespace medley::worker {

struct Action {
  enum class Kind { kForward, kBackward };
  Kind kind = Kind::kForward;
  int micro = 0;
  bool operator==(const Action&) const = default;
};

// 0 <= stage < stages, micro_batches > 0. Callers must reject ASYNC_1F1B, which is not synchronous.
std::vector<Action> StageActions(model::ScheduleKind kind, int stage, int stages, int micro_batches);

}  // namespace medley::worker
