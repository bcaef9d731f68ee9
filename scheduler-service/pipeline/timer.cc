#include "scheduler-service/pipeline/timer.h"

#include "common/base/status.h"
#include "common/model/execution_plan.h"
#include "scheduler-service/pipeline/closed_form.h"
#include "scheduler-service/planning/candidate.h"

namespace medley::sched {
namespace {

std::vector<int> Flattened(const std::vector<PipelineStage>& stages) {
  std::vector<int> out;
  for (const PipelineStage& stage : stages) {
    out.push_back(stage.end);
    out.push_back(static_cast<int>(stage.devices.size()));
    out.insert(out.end(), stage.devices.begin(), stage.devices.end());
  }
  return out;
}

}  // namespace

double PipelineTimer::Seconds(const std::vector<PipelineStage>& stages) {
  const auto [known, added] = known_.try_emplace(Flattened(stages), kForever);
  if (!added) return known->second;
  const model::ExecutionPlan plan = BuildPipeline(problem_, stages);
  const auto figures = judge_.Within(plan);
  if (!figures.ok()) {
    why_ = base::Message(figures.status());
    return kForever;
  }
  known->second = figures->seconds;
  if (figures->seconds < best_figures_.seconds) {
    best_figures_ = *figures;
    best_ = stages;
    limits_.Report(plan, *figures);
  }
  return figures->seconds;
}

Candidate PipelineTimer::Best() const {
  Candidate out;
  out.judged = calls();
  out.complete = !limits_.Spent();
  if (best_.empty()) {
    out.notes.push_back("no pipeline fits on these devices: " + why_);
    return out;
  }
  out.plan = BuildPipeline(problem_, best_);
  out.figures = best_figures_;
  out.model_seconds = SecondsOfPipeline(problem_, best_);
  out.explanation = PipelineText(problem_, best_) + "\n";
  return out;
}

}  // namespace medley::sched
