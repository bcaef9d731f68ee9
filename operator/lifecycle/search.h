// The search for a plan: a question to the scheduling service, and what is needed to judge its answer.
//
// The answer takes as long as the planner does, and other passes over the job go on meanwhile. So the question keeps
// what it was asked with: prices and units may be others when the answer comes. A plan is judged by what it was asked
// with, and its units are reserved before it is accepted.
//
//   Consider, MakeFirstPlan --- ask ---> answered in this pass ---> judge ---> accept, stay, or ask again
//                                \-----> not yet: SearchState::pending; later passes ask for the answer
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "common/model/forward.h"
#include "common/model/plan_result.h"
#include "common/model/reason.h"
#include "operator/api/training_job.h"
#include "operator/lifecycle/planning_inputs.h"
#include "operator/lifecycle/profiling.h"
#include "operator/records/plan_request.h"

namespace medley::ops::lifecycle {

class Pass;

struct PlanSearch {
  std::shared_ptr<const model::PlanRequest> request;  // one object a question: the shell knows it by its address
  std::shared_ptr<const ProfiledPools> offered;       // has a profile
  JobProgress progress;
  int64_t spec_generation = 0;  // of the TrainingJob
  int64_t plan_generation = 0;  // of the job's plan; 0: it had none
  int64_t turn = 0;             // of a job without a plan: in which its units were counted (WaitingLine)
  PlanningInputs seen;          // when the search began; what differs when it ends is looked at then
  // For a job with a plan:
  Reason reason = Reason::kFirstPlan;
  bool forced = false;
  bool evacuates = false;     // nodes that are about to be lost
  PlanningInputs considered;  // as `seen`, or with fewer units
  // The answer to the question before, by which no plan reaches the goal: this one asks what uncorrected profiles
  // promise.
  std::shared_ptr<const model::PlanResult> corrected;
  // The plan of the question before, which does not fit into the memory of units: this one has a smaller bound.
  std::optional<model::Reason> shortage;
  int tightened = 0;  // how often it was made smaller
  // How often units were taken from the offer because the job's own pods have them until the switch.
  int narrowed = 0;
};

// For the job as it is now, for `offered`. The caller adds what a job with a plan needs.
PlanSearch NewSearch(const Pass& pass, const TrainingJob& job, ProfiledPools offered, const JobProgress& progress);
// The same question with other pools, or with another profile of the same pools.
PlanSearch WithPools(const PlanSearch& search, const TrainingJob& job, UsablePools pools);
PlanSearch WithProfile(const PlanSearch& search, const TrainingJob& job, const model::Profile& profile);

struct SearchState {
  static constexpr char kOwner[] = "search";
  std::optional<PlanSearch> pending;  // whose answer has not come yet
};

struct SearchAnswer {
  bool pending = false;                    // the search is in SearchState::pending
  std::optional<model::PlanResult> found;  // nullopt, and not pending: the service is unavailable or has refused; an
                                           // Event, a condition or a retry has been arranged
};
// A plan whose processes cannot fit into the memory of their units is no answer: the planner is asked for others a few
// times, then the answer is without a plan and has the shortage as its reason.
absl::StatusOr<SearchAnswer> AskPlanner(Pass& pass, const TrainingJob& job, PlanSearch search);

// Requests a pass if prices, units, pools or profiles are not as they were when the search began.
absl::Status LookAgainIfChanged(Pass& pass, const TrainingJob& job, const PlanSearch& search);

void DropSearch(Pass& pass);                  // its answer is of no use
void DropSearch(Pass& pass, bool evacuates);  // unless it is of the other kind (PlanSearch::evacuates)
// Forgets a search whose answer is of no use any more: the spec or the plan has changed.
void DropStaleSearch(Pass& pass);

}  // namespace medley::ops::lifecycle
