#include "scheduler-service/remote_planner/remote_planner.h"

#include <algorithm>

#include "common/base/log.h"
#include "common/base/status.h"
#include "scheduler-service/cost/problem.h"
#include "scheduler-service/planner/execution_plan.h"
#include "scheduler-service/planning/candidate.h"
#include "scheduler-service/remote_planner/candidates.h"
#include "scheduler-service/remote_planner/planner_call.h"

namespace medley::sched {
namespace {

constexpr double kRemoteShare = 0.7;  // of the time budget; the rest is kept for the own planner

// The request's options are those of the process: the own planner gets none.
absl::StatusOr<Candidate> SolveWithoutOptions(const Planner& own, const Question& question, Judge& judge, uint64_t seed,
                                              const Budget& budget) {
  if (question.request().planner.options.empty()) return own.Solve(question, judge, seed, budget);
  model::PlanRequest request = question.request();
  request.planner.options.clear();
  MEDLEY_ASSIGN_OR_RETURN(const Question without, Question::Compile(std::move(request)));
  return own.Solve(without, judge, seed, budget);
}

// What one call has brought.
struct CallResult {
  std::optional<Provisioned> best;
  std::string failure;  // a sentence without its end, if the call did not end in order or brought nothing
};

class RemoteUnitPlanner final : public Planner {
 public:
  RemoteUnitPlanner(std::unique_ptr<PlannerCall> call, const Planner& own) : own_(own), call_(std::move(call)) {}

  std::string_view name() const override { return call_->config().name; }
  std::string_view description() const override { return call_->config().description; }
  Takes takes() const override { return {.supply = Supply::kUnits, .tables = true, .other_options = true}; }
  bool deterministic() const override { return false; }  // another process may answer anything

  absl::StatusOr<Candidate> Search(const Question& question, Judge& judge, uint64_t seed,
                                   const Budget& budget) const override {
    const Problem& problem = question.units();
    CallResult remote = Ask(problem, seed, budget.Share(kRemoteShare));
    auto own = SolveWithoutOptions(own_, question, judge, seed, budget);
    const bool own_plan = own.ok() && own->plan;
    const double limit = own_plan ? own->figures.usd : kInfinity;
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
    Candidate candidate = own.ok() ? *std::move(own) : Candidate{};
    if (use_remote) {
      candidate.plan = BuildExecutionPlan(problem, remote.best->stages);
      MEDLEY_ASSIGN_OR_RETURN(candidate.figures, judge.Of(*candidate.plan));
      candidate.planner = {};
      candidate.complete = true;
    } else if (candidate.planner.empty()) {
      candidate.planner = own_.name();
    }
    if (!note.empty()) {
      base::log::Warn("planner failed or was not the best", {{"planner", call_->config().name}, {"note", note}});
      candidate.notes.push_back(std::move(note));
    }
    return candidate;
  }

 private:
  // Ends when `budget` does.
  CallResult Ask(const Problem& problem, uint64_t seed, const Budget& budget) const {
    Candidates candidates(problem);
    CallResult result;
    result.failure = call_->Ask(problem.request(), seed, budget.RemainingSeconds(), budget.stop(), candidates);
    result.best = candidates.best();
    base::log::Debug("planner claims", {{"planner", call_->config().name},
                                        {"lower_bound", std::to_string(candidates.claimed_lower_bound())}});
    return result;
  }

  const Planner& own_;
  const std::unique_ptr<PlannerCall> call_;
};

class RemoteDevicePlanner final : public Planner {
 public:
  RemoteDevicePlanner(std::unique_ptr<PlannerCall> call, const Planner& own) : own_(own), call_(std::move(call)) {}

  std::string_view name() const override { return call_->config().name; }
  std::string_view description() const override { return call_->config().description; }
  Takes takes() const override { return {.supply = Supply::kDevices, .graphs = true, .other_options = true}; }

  absl::StatusOr<Candidate> Search(const Question& question, Judge& judge, uint64_t seed,
                                   const Budget& limits) const override {
    const DeviceProblem& problem = question.devices();
    DeviceCandidates candidates(question, limits.stop());
    const std::string failure =
        call_->Ask(problem.request(), seed, kRemoteShare * limits.RemainingSeconds(), limits.stop(), candidates);
    auto own = SolveWithoutOptions(own_, question, judge, seed, limits);
    const bool own_plan = own.ok() && own->plan;
    const bool use_remote =
        candidates.best() && (!own_plan || candidates.seconds() <= own->figures.seconds * (1 + kSameCost));
    if (!use_remote && !own.ok()) return own;
    std::string note = failure;
    if (!failure.empty()) {
      note += use_remote ? "; its best candidate is used, because no better plan is known"
                         : "; the answer is the service's own";
    } else if (!use_remote) {
      note = fmt::format(
          "with the best plan of planner {} a step takes {:.6g} s, with the service's own {:.6g} s; the answer is the "
          "service's own",
          name(), candidates.seconds(), own->figures.seconds);
    }
    Candidate candidate = own.ok() ? *std::move(own) : Candidate{};
    candidate.judged += candidates.simulated();
    if (use_remote) {
      if (own_plan) {
        candidate.alternatives.push_back(
            {fmt::format("planner {} of the service", own_.name()), candidate.figures.seconds, ""});
      }
      candidate.plan = candidates.best();
      candidate.figures = FiguresOf(problem, *candidate.plan, candidates.seconds());
      candidate.lower_bound = candidate.model_seconds = 0;
      candidate.planner = {};
      candidate.explanation = {};
      candidate.complete = false;  // another process may answer anything, so the answer is not kept for equal requests
    } else if (candidate.planner.empty()) {
      candidate.planner = own_.name();
    }
    if (!note.empty()) {
      base::log::Warn("planner failed or was not the best", {{"planner", std::string(name())}, {"note", note}});
      candidate.notes.push_back(std::move(note));
    }
    return candidate;
  }

 private:
  const Planner& own_;
  const std::unique_ptr<PlannerCall> call_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Planner>> MakeRemotePlanner(const RemotePlannerConfig& config, const Planner& own) {
  MEDLEY_ASSIGN_OR_RETURN(std::unique_ptr<PlannerCall> call, PlannerCall::Make(config));
  if (own.takes().supply == Supply::kUnits) return std::make_unique<RemoteUnitPlanner>(std::move(call), own);
  return std::make_unique<RemoteDevicePlanner>(std::move(call), own);
}

absl::Status AddRemotePlanners(const std::filesystem::path& file, bool insecure, Registry& registry) {
  std::vector<std::string> taken;
  for (const auto& planner : registry.planners()) taken.emplace_back(planner->name());
  MEDLEY_ASSIGN_OR_RETURN(const auto configs, LoadRemotePlanners(file, taken, insecure));
  for (const RemotePlannerConfig& config : configs) {
    for (const Supply supply : {Supply::kUnits, Supply::kDevices}) {
      const Planner* const own = registry.Find("auto", supply);
      MEDLEY_CHECK(own != nullptr, "the registry has no planner auto");
      auto planner = MakeRemotePlanner(config, *own);
      if (!planner.ok()) return base::Annotate(planner.status(), "planner " + config.name);
      registry.Add(*std::move(planner));
    }
  }
  return absl::OkStatus();
}

}  // namespace medley::sched
