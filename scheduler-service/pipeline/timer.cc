#include "scheduler-service/pipeline/timer.h"

#include "common/base/status.h"
#include "scheduler-service/pipeline/closed_form.h"

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
  const auto seconds = evaluator_.Seconds(plan);
  if (!seconds.ok()) {
    why_ = base::Message(seconds.status());
    return kForever;
  }
  known->second = *seconds;
  if (*seconds < best_seconds_) {
    best_seconds_ = *seconds;
    best_ = stages;
    limits_.Report(plan, *seconds);
  }
  return *seconds;
}

StepTimeSolution PipelineTimer::Solution() const {
  StepTimeSolution out;
  out.simulated = calls();
  out.complete = !limits_.Spent();
  if (best_.empty()) {
    out.notes.push_back("no pipeline fits on these devices: " + why_);
    return out;
  }
  out.best = BuildPipeline(problem_, best_);
  out.seconds = best_seconds_;
  out.model_seconds = SecondsOfPipeline(problem_, best_).step;
  out.explanation = PipelineText(problem_, best_) + "\n";
  return out;
}

}  // namespace medley::sched
