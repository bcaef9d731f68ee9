#include "scheduler-service/remote_planner/candidates.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/base/status.h"
#include "common/model/convert.h"
#include "common/model/executable.h"
#include "common/rpc/decode.h"
#include "medley/planner/v1/planner.pb.h"
#include "scheduler-service/cost/evaluate.h"
#include "scheduler-service/planner/execution_plan.h"
#include "scheduler-service/planner/program_fit.h"
#include "scheduler-service/planner/schedule_names.h"

namespace medley::sched {
namespace {

constexpr size_t kMostPrinted = 200;

// Sums in 64 bits: the cost model adds the units of a type in an int.
bool ExceedsLimits(const Problem& problem, const std::vector<StageChoice>& stages) {
  std::vector<int64_t> units(static_cast<size_t>(problem.types()), 0);
  for (const StageChoice& stage : stages) {
    if ((units[static_cast<size_t>(stage.type)] += stage.units) > problem.limit(stage.type)) return true;
  }
  return false;
}

std::optional<Provisioned> WithGivenUnits(const Problem& problem, std::vector<StageChoice> stages) {
  if (ExceedsLimits(problem, stages)) return std::nullopt;
  const Score score = ScoreOf(problem, stages);
  if (!KeepsConstraints(problem, stages, score)) return std::nullopt;
  return Provisioned{std::move(stages), score};
}

}  // namespace

std::string Printable(std::string_view text) {
  std::string out(text.substr(0, kMostPrinted));
  std::replace_if(
      out.begin(), out.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return out;
}

bool CandidateReader::Take(std::string_view bytes) {
  planner::v1::SolveResponse response;
  absl::Status status = rpc::Decode(bytes, response);
  const bool empty = response.schedule().empty() && response.units().empty() && !response.has_plan();
  if (status.ok() && response.done() && empty) return true;
  ++taken_;
  if (status.ok()) status = Score(response);
  if (!status.ok()) {
    if (++refused_ == 1) first_refusal_ = Printable(base::Message(status));
  }
  return response.done();
}

absl::Status Candidates::Score(const planner::v1::SolveResponse& response) {
  const double claimed = response.claimed_lower_bound_usd();
  if (!(std::isfinite(claimed) && claimed >= 0)) {
    return base::InvalidArgument("claimedLowerBoundUsd: must be finite and not negative, is {}", claimed);
  }
  const std::vector<std::string> schedule(response.schedule().begin(), response.schedule().end());
  const std::vector<int> cuts(response.cuts().begin(), response.cuts().end());
  MEDLEY_ASSIGN_OR_RETURN(std::vector<StageChoice> stages, ReadSchedule(problem_, schedule, cuts));
  claimed_lower_bound_ = std::max(claimed_lower_bound_, claimed);
  std::optional<Provisioned> plan;
  if (response.units().empty()) {
    plan = ProvisionExact(problem_, std::move(stages));
  } else {
    MEDLEY_RETURN_IF_ERROR(SetUnits({response.units().data(), static_cast<size_t>(response.units_size())}, stages));
    plan = WithGivenUnits(problem_, std::move(stages));
  }
  if (!plan) {
    CountInfeasible();
    return absl::OkStatus();
  }
  MEDLEY_RETURN_IF_ERROR(CheckProgram(BuildExecutionPlan(problem_, plan->stages), problem_.request()));
  if (!best_ || plan->score.cost <= best_->score.cost * (1 + kSameCost)) {  // planners send their best last
    best_ = std::move(plan);
  }
  return absl::OkStatus();
}

absl::Status DeviceCandidates::Score(const planner::v1::SolveResponse& response) {
  if (!response.has_plan()) return base::InvalidArgument("plan: must be set where the objective is step time");
  MEDLEY_ASSIGN_OR_RETURN(model::ExecutionPlan plan, model::FromProto(response.plan()));
  if (plan.placements.empty()) return base::InvalidArgument("plan.placements: must not be empty");
  for (size_t d = 0; d < plan.devices.size(); ++d) {
    const auto found = problem_.index().find(plan.devices[d].id);
    if (found == problem_.index().end() || plan.devices[d] != problem_.device(found->second)) {
      return base::InvalidArgument("plan.devices[{}]: '{}' is no device of the cluster, or another one there", d,
                                   plan.devices[d].id);
    }
  }
  // What the user asked for is not the planner's to change.
  const model::PlannerOptions& asked = problem_.request().planner;
  if (plan.schedule.kind != asked.schedule || plan.schedule.max_staleness != asked.max_staleness ||
      plan.schedule.micro_batches != problem_.micro_batches()) {
    return base::InvalidArgument("plan.schedule: is not that of the request");
  }
  MEDLEY_RETURN_IF_ERROR(model::CheckExecutable(plan));
  plan.estimate = {};
  plan.provenance = {};
  const auto seconds = judge_->SecondsWithin(plan);
  if (absl::IsResourceExhausted(seconds.status()) || absl::IsFailedPrecondition(seconds.status())) {
    CountInfeasible();
    return absl::OkStatus();
  }
  MEDLEY_RETURN_IF_ERROR(seconds.status());
  if (*seconds >= seconds_) return absl::OkStatus();
  seconds_ = *seconds;
  best_ = std::move(plan);
  return absl::OkStatus();
}

}  // namespace medley::sched
