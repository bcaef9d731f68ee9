// Spending: what the pods of a job cost, each from its creation to its end.
//
// A pass adds what the pods have cost since the pass before, at the prices of that time. The sum and the time up to
// which it counts are in the status, so that the next leader goes on from there; a pod that ended while no operator ran
// is counted up to the last status.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "operator/lifecycle/world.h"

namespace medley::ops::lifecycle {

class Pass;

struct SpendingState {
  static constexpr char kOwner[] = "spending";
  std::map<std::string, PaidPod> pods;          // of the last pass, by UID
  std::optional<base::WallTime> counted_until;  // in this process
};

// Adds to JobStatus::cost, and to the metrics.
void CountSpending(Pass& pass);

// USD of pods `now`, by UID, since `from`; `before` has those that existed at `from`, with the prices of that time. A
// pod that does not exist any more ended at `until`.
double UsdOf(const std::map<std::string, PaidPod>& before, const std::map<std::string, PaidPod>& now,
             base::WallTime from, base::WallTime until);

}  // namespace medley::ops::lifecycle
