#include "scheduler-service/remote_planner/candidates.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/base/status.h"
#include "common/rpc/decode.h"
#include "medley/planner/v1/planner.pb.h"
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

bool Candidates::Take(std::string_view bytes) {
  planner::v1::SolveResponse response;
  absl::Status status = rpc::Decode(bytes, response);
  if (status.ok() && response.done() && response.schedule().empty() && response.units().empty()) return true;
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
  MEDLEY_ASSIGN_OR_RETURN(std::vector<StageChoice> stages, ReadSchedule(problem_, schedule));
  claimed_lower_bound_ = std::max(claimed_lower_bound_, claimed);
  std::optional<Provisioned> plan;
  if (response.units().empty()) {
    plan = ProvisionExact(problem_, std::move(stages));
  } else {
    MEDLEY_RETURN_IF_ERROR(SetUnits({response.units().data(), static_cast<size_t>(response.units_size())}, stages));
    plan = WithGivenUnits(problem_, std::move(stages));
  }
  if (!plan) {
    ++infeasible_;
    return absl::OkStatus();
  }
  MEDLEY_RETURN_IF_ERROR(CheckProgram(BuildExecutionPlan(problem_, plan->stages), problem_.request()));
  if (!best_ || plan->score.cost <= best_->score.cost * (1 + kSameCost)) {  // planners send their best last
    best_ = std::move(plan);
  }
  return absl::OkStatus();
}

}  // namespace medley::sched
