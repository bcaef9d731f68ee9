// Spending: what the pods of a job cost, each from its creation to its end, and what that was for (common/goodput).
//
// A pass adds what the pods have cost since the pass before, at the prices of that time. The sum, the bill and the time
// up to which they count are in the status, so that the next leader goes on from there; a pod that ended while no
// operator ran is counted up to the last status.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/goodput/bill.h"
#include "operator/lifecycle/world.h"

namespace medley::ops::lifecycle {

class Pass;

struct SpendingState {
  static constexpr char kOwner[] = "spending";
  std::map<std::string, PaidPod> pods;          // of the last pass, by UID
  std::optional<base::WallTime> counted_until;  // in this process
};

// Adds to JobStatus::cost and JobStatus::goodput, and to the metrics.
void CountSpending(Pass& pass);

// The time that a pass counts.
struct PaidTime {
  base::WallTime from;
  base::WallTime until;
  std::optional<base::WallTime> idle_since;  // the job is over, or suspended
  bool waits = false;                        // the job cannot begin, because one of its pods has no node
};

// What pods `now`, by UID, cost in that time, and were used for as far as the cluster shows it; `before` has those that
// existed at its beginning, with the prices of that time. A pod that does not exist any more ended at its end.
std::vector<goodput::Paid> PaidSince(const std::map<std::string, PaidPod>& before,
                                     const std::map<std::string, PaidPod>& now, const PaidTime& time);

}  // namespace medley::ops::lifecycle
