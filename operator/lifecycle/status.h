// The job's status: conditions, the plan's estimates, the number of running pods; and when to write it.
#pragma once

#include <absl/status/status.h>

#include <optional>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "kube/packed.h"
#include "operator/api/job_status.h"

namespace medley::ops::lifecycle {

class Pass;

struct StatusState {
  static constexpr char kOwner[] = "status";
  // The status as this operator wants it. It counts even where the cache still shows an older one: this operator is
  // its only writer.
  JobStatus current;
  std::optional<kube::Packed> written;  // absent: nothing was read or written yet
  base::SteadyTime written_at{};
};

// Reads the stored status into an empty memory.
void LoadStatus(Pass& pass);

// Publishes an Event as well when the condition Planned or PoolsUsable turns False or gives a new reason.
void SetCondition(Pass& pass, const char* type, ConditionStatus status, Reason reason, std::string_view message);

// Why the job cannot be planned now, for the condition Planned.
struct Unplanned {
  ConditionStatus status = ConditionStatus::kFalse;  // or unknown: an answer is missing
  Reason reason = Reason::kInfeasible;
  std::string message;
};
void SetUnplanned(Pass& pass, const Unplanned& why);

// Describes the plan in the memory.
void FillPlanStatus(Pass& pass);
// "Planned: True" with the summary of the plan in the memory.
void SetPlanned(Pass& pass);
void CheckPodsReady(Pass& pass);

// Writes the status if it differs from the written one: at once when a condition or the plan has changed, otherwise at
// most once per status interval.
absl::Status WriteStatus(Pass& pass);

// Seconds since `time` (RFC 3339), at least 0; 0 when it is empty or invalid.
double SecondsSince(const std::string& time, base::WallTime now);

}  // namespace medley::ops::lifecycle
