// The plans that the operator has sent: the newest, and whether its members can run it.
//
// Data in: requests of the operator. It decides which of them are served.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <optional>
#include <string>

#include "medley/job/v1/coordinator.pb.h"
#include "worker/coordinator/core/effects.h"
#include "worker/coordinator/core/generation.h"
#include "worker/coordinator/core/options.h"

namespace medley::worker {

struct PlansState {
  std::optional<job::v1::ApplyPlanRequest> desired;
  std::optional<job::v1::ApplyPlanRequest> first;
  // The last plan, when a member of it can never run it. `desired` is then the plan in force.
  std::optional<job::v1::RefusedPlan> refused;
  int64_t leader_term = 0;  // the newest term served
};

namespace plans {

// Whether this job can run the plan at all. Errors: those of CoordinatorCore::ApplyPlan.
absl::Status Check(const CoreOptions& options, const job::v1::ApplyPlanRequest& request);
// Whether the plan may follow those that were accepted before. Errors: FailedPrecondition, Unimplemented.
absl::Status MayFollow(const PlansState& plans, const CoreOptions& options, const job::v1::ApplyPlanRequest& request);
// Why a generation of the newest plan starts, unless something has interrupted the job.
Cause WhyNew(const PlansState& plans);

// Returns whether the term is newer than the last one, which is to be journaled. Errors: model::StaleTerm.
absl::StatusOr<bool> AcceptTerm(PlansState& own, int64_t leader_term, Effects& out);
// Returns whether it is another plan than the last one; otherwise only its prices are new.
bool Accept(PlansState& own, const job::v1::ApplyPlanRequest& request);
// A member cannot run the plan, which is given up for `in_force`.
void Refuse(PlansState& own, const job::v1::ApplyPlanRequest& in_force, int64_t plan, const std::string& member,
            const std::string& message);
void Restore(PlansState& own, const CoreOptions& options, const job::v1::CoordinatorState& journal);

}  // namespace plans
}  // namespace medley::worker
