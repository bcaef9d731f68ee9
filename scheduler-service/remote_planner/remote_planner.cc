#include "scheduler-service/remote_planner/remote_planner.h"

#include <algorithm>

#include "common/base/log.h"
#include "common/base/status.h"
#include "scheduler-service/remote_planner/candidates.h"
#include "scheduler-service/remote_planner/planner_call.h"

namespace medley::sched {
namespace {

constexpr double kRemoteShare = 0.7;  // of the time budget; the rest is kept for the own planner

// The request's options are those of the process: the own planner gets none.
template <typename P, typename OwnPlanner, typename Limits>
auto SolveWithoutOptions(const OwnPlanner& own, const P& problem, uint64_t seed, const Limits& limits)
    -> decltype(own.Solve(problem, seed, limits)) {
  if (problem.request().planner.options.empty()) return own.Solve(problem, seed, limits);
  model::PlanRequest request = problem.request();
  request.planner.options.clear();
  MEDLEY_ASSIGN_OR_RETURN(const P without, P::Compile(std::move(request)));
  return own.Solve(without, seed, limits);
}

// What one call has brought.
struct CallResult {
  std::optional<Provisioned> best;
  std::string failure;  // a sentence without its end, if the call did not end in order or brought nothing
};

class RemotePlanner final : public Planner {
 public:
  RemotePlanner(std::unique_ptr<PlannerCall> call, const Planner& own) : own_(own), call_(std::move(call)) {}

  std::string_view name() const override { return call_->config().name; }
  std::string_view description() const override { return call_->config().description; }
  Takes takes() const override { return {.tables = true, .other_options = true}; }
  bool deterministic() const override { return false; }  // another process may answer anything

  absl::StatusOr<Solution> Solve(const Problem& problem, uint64_t seed, const Budget& budget) const override {
    CallResult remote = Ask(problem, seed, budget.Share(kRemoteShare));
    auto own = SolveWithoutOptions<Problem>(own_, problem, seed, budget);
    const bool own_plan = own.ok() && own->best;
    const double limit = own_plan ? own->best->score.cost : kInfinity;
    const double margin = limit * (remote.failure.empty() ? kSameCost : -kSameCost);
    const bool use_remote = remote.best && (!own_plan || remote.best->score.cost <= limit + margin);
    std::string note;
    if (!remote.failure.empty()) {
      note = use_remote ? remote.failure + "; its best candidate is used, because no better plan is known"
                        : remote.failure + "; the answer is the service's own";
    } else if (!use_remote) {
      note = fmt::format(
          "the best plan of planner {} costs {:.6g} USD, and the service's own costs {:.6g} USD; the "
          "answer is the service's own",
          name(), remote.best->score.cost, limit);
    }
    if (!use_remote && !own.ok()) return own;
    Solution solution = own.ok() ? *std::move(own) : Solution{};
    if (use_remote) {
      solution.best = std::move(remote.best);
      solution.planner = {};
      solution.complete = true;
    } else if (solution.planner.empty()) {
      solution.planner = own_.name();
    }
    if (!note.empty()) {
      log::Warn("planner failed or was not the best", {{"planner", call_->config().name}, {"note", note}});
      solution.notes.push_back(std::move(note));
    }
    return solution;
  }

 private:
  // Ends when `budget` does.
  CallResult Ask(const Problem& problem, uint64_t seed, const Budget& budget) const {
    Candidates candidates(problem);
    CallResult result;
    result.failure = call_->Ask(problem.request(), seed, budget.RemainingSeconds(), budget.stop(), candidates);
    result.best = candidates.best();
    log::Debug("planner claims",
               {{"planner", call_->config().name}, {"lower_bound", std::to_string(candidates.claimed_lower_bound())}});
    return result;
  }

  const Planner& own_;
  const std::unique_ptr<PlannerCall> call_;
};

class RemoteStepTimePlanner final : public StepTimePlanner {
 public:
  RemoteStepTimePlanner(std::unique_ptr<PlannerCall> call, const StepTimePlanner& own)
      : own_(own), call_(std::move(call)) {}

  std::string_view name() const override { return call_->config().name; }
  std::string_view description() const override { return call_->config().description; }
  Takes takes() const override { return {.graphs = true, .other_options = true}; }

  absl::StatusOr<StepTimeSolution> Solve(const StepTimeProblem& problem, uint64_t seed,
                                         const SearchLimits& limits) const override {
    StepTimeCandidates candidates(problem, limits.stop());
    const std::string failure =
        call_->Ask(problem.request(), seed, kRemoteShare * limits.RemainingSeconds(), limits.stop(), candidates);
    auto own = SolveWithoutOptions<StepTimeProblem>(own_, problem, seed, limits);
    const bool own_plan = own.ok() && own->best;
    const bool use_remote = candidates.best() && (!own_plan || candidates.seconds() <= own->seconds * (1 + kSameCost));
    if (!use_remote && !own.ok()) return own;
    std::string note = failure;
    if (!failure.empty()) {
      note += use_remote ? "; its best candidate is used, because no better plan is known"
                         : "; the answer is the service's own";
    } else if (!use_remote) {
      note = fmt::format(
          "with the best plan of planner {} a step takes {:.6g} s, with the service's own {:.6g} s; the answer is the "
          "service's own",
          name(), candidates.seconds(), own->seconds);
    }
    StepTimeSolution solution = own.ok() ? *std::move(own) : StepTimeSolution{};
    solution.simulated += candidates.simulated();
    if (use_remote) {
      if (own_plan) {
        solution.alternatives.push_back({fmt::format("planner {} of the service", own_.name()), solution.seconds, ""});
      }
      solution.best = candidates.best();
      solution.seconds = candidates.seconds();
      solution.lower_bound_seconds = solution.model_seconds = 0;
      solution.planner = {};
      solution.explanation = {};
      solution.complete = false;  // another process may answer anything, so the answer is not kept for equal requests
    } else if (solution.planner.empty()) {
      solution.planner = own_.name();
    }
    if (!note.empty()) {
      log::Warn("planner failed or was not the best", {{"planner", std::string(name())}, {"note", note}});
      solution.notes.push_back(std::move(note));
    }
    return solution;
  }

 private:
  const StepTimePlanner& own_;
  const std::unique_ptr<PlannerCall> call_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Planner>> MakeRemotePlanner(const RemotePlannerConfig& config, const Planner& own) {
  MEDLEY_ASSIGN_OR_RETURN(std::unique_ptr<PlannerCall> call, PlannerCall::Make(config));
  return std::make_unique<RemotePlanner>(std::move(call), own);
}

absl::StatusOr<std::unique_ptr<StepTimePlanner>> MakeRemoteStepTimePlanner(const RemotePlannerConfig& config,
                                                                           const StepTimePlanner& own) {
  MEDLEY_ASSIGN_OR_RETURN(std::unique_ptr<PlannerCall> call, PlannerCall::Make(config));
  return std::make_unique<RemoteStepTimePlanner>(std::move(call), own);
}

absl::Status AddRemotePlanners(const std::filesystem::path& file, bool insecure, Registry& registry) {
  std::vector<std::string> taken;
  for (const auto& planner : registry.planners()) taken.emplace_back(planner->name());
  for (const auto& planner : registry.step_time().planners()) taken.emplace_back(planner->name());
  MEDLEY_ASSIGN_OR_RETURN(const auto configs, LoadRemotePlanners(file, taken, insecure));
  const Planner* const own = registry.Find("auto");
  const StepTimePlanner* const own_step_time = registry.step_time().Find("auto");
  MEDLEY_CHECK(own != nullptr && own_step_time != nullptr, "the registry has no planner auto");
  for (const RemotePlannerConfig& config : configs) {
    auto planner = MakeRemotePlanner(config, *own);
    if (!planner.ok()) return base::Annotate(planner.status(), "planner " + config.name);
    registry.Add(*std::move(planner));
    auto step_time = MakeRemoteStepTimePlanner(config, *own_step_time);
    if (!step_time.ok()) return base::Annotate(step_time.status(), "planner " + config.name);
    registry.Add(*std::move(step_time));
  }
  return absl::OkStatus();
}

}  // namespace medley::sched
