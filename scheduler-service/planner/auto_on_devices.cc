#include "scheduler-service/planner/auto_on_devices.h"

#include <algorithm>
#include <utility>

#include "common/base/status.h"
#include "scheduler-service/graph/graph_planners.h"
#include "scheduler-service/hierarchy/hierarchy_planner.h"
#include "scheduler-service/pipeline/exact_pipeline.h"
#include "scheduler-service/pipeline/pipeline_planners.h"
#include "scheduler-service/planning/candidate.h"
#include "scheduler-service/planning/overlap.h"
#include "scheduler-service/planning/registry.h"

namespace medley::sched {
namespace {

class AutoOnDevices final : public Planner {
 public:
  AutoOnDevices() : hierarchy_(MakeHierarchyPlanner()), graph_(MakeGraph({.calls = kGraphCalls})) {
    for (auto& planner : MakePipelinePlanners()) pipelines_.Add(std::move(planner));
  }
  std::string_view name() const override { return "auto"; }
  std::string_view description() const override {
    return "the fastest of hierarchy and graph (synchronous schedules), local and, with few devices, exact";
  }

  Takes takes() const override { return {.supply = Supply::kDevices, .graphs = true}; }

  absl::StatusOr<Candidate> Search(const Question& question, Judge& judge, uint64_t seed,
                                   const Budget& limits) const override {
    const DeviceProblem& problem = question.devices();
    std::vector<std::pair<const Planner*, std::string>> asked;
    // Replicas of the whole model have no pipeline, so nothing is asynchronous in them.
    if (!problem.asynchronous()) asked.emplace_back(hierarchy_.get(), "replicas of the whole model in groups");
    const bool few = problem.devices() <= kMostExactDevices;
    const bool worth = problem.asynchronous() || problem.devices() <= kMostPipelined;
    if (problem.devices() > 1 && !problem.cuts().empty() && worth) {
      if (few)
        asked.emplace_back(pipelines_.Find("exact", Supply::kDevices),
                           "pipelines, of which few devices allow an exact search");
      asked.emplace_back(pipelines_.Find("local", Supply::kDevices), "pipelines, by local search with the simulator");
    }
    const bool equal = problem.request().planner.sync.mode == model::SyncMode::kFull;
    if (problem.devices() > 1 && problem.devices() <= kMostGraphDevices && !problem.asynchronous() && equal) {
      asked.emplace_back(graph_.get(), "single operations and balanced shares, by local search");
    }
    if (asked.empty()) asked.emplace_back(pipelines_.Find("one-device", Supply::kDevices), "the model is one stage");
    Candidate best;
    std::string compared;
    double bound = 0, pipelines = 0;
    bool is_pipeline = false;
    for (const auto& [planner, what] : asked) {
      MEDLEY_ASSIGN_OR_RETURN(Candidate one, planner->Solve(question, judge, seed, limits));
      compared += fmt::format("{}{} ({}): {}", compared.empty() ? "" : "; ", planner->name(), what,
                              one.plan            ? fmt::format("{:.6g} s", one.figures.seconds)
                              : one.notes.empty() ? "no plan"
                                                  : one.notes.back());
      one.planner = planner->name();
      const int64_t judged = best.judged + one.judged;
      const bool complete = best.complete && one.complete;
      if (planner == graph_.get()) bound = one.lower_bound;
      pipelines = std::max(pipelines, planner == graph_.get() ? 0 : one.lower_bound);
      if (one.plan && (!best.plan || one.figures.seconds < best.figures.seconds)) {
        best = std::move(one);
        is_pipeline = planner != graph_.get() && planner != hierarchy_.get();
      }
      best.judged = judged;
      best.complete = complete;
    }
    // That of exact is for pipelines, that of graph for all plans.
    best.lower_bound = is_pipeline ? std::max(bound, pipelines) : bound;
    best.notes.push_back("planner auto compared " + compared);
    if (best.plan) MEDLEY_RETURN_IF_ERROR(Overlap(judge, limits, best));
    return best;
  }

 private:
  static absl::Status Overlap(Judge& judge, const Budget& limits, Candidate& best) {
    Overlapping overlapping(judge, limits);
    MEDLEY_ASSIGN_OR_RETURN(auto overlapped, overlapping.NextStep(*best.plan, best.figures.seconds * kWorthOverlap));
    best.judged += overlapping.calls();
    if (!overlapped) return absl::OkStatus();
    best.alternatives.push_back({"the plan that ends its reductions before the next step", best.figures.seconds, ""});
    best.explanation += "reductions go on during the next step's forward pass\n";
    best.plan = std::move(overlapped->plan);
    best.figures = overlapped->figures;
    limits.Report(*best.plan, best.figures);
    return absl::OkStatus();
  }

  static constexpr int kMostPipelined = 64;  // devices: beyond, stages would be shorter than their messages

  static constexpr int64_t kGraphCalls = 1000;
  static constexpr int kMostGraphDevices = 16;  // beyond, single operations need more simulations than the others

  const std::unique_ptr<Planner> hierarchy_;
  const std::unique_ptr<Planner> graph_;
  Registry pipelines_;
};

}  // namespace

std::unique_ptr<Planner> MakeAutoOnDevices() { return std::make_unique<AutoOnDevices>(); }

}  // namespace medley::sched
