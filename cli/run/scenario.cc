#include "cli/run/scenario.h"

#include "common/base/status.h"
#include "common/document/reader.h"
#include "common/model/task.h"

namespace medley::cli {
namespace {

using document::Reader;

KillStep ReadKill(const Reader& reader) {
  KillStep kill;
  reader.Read("role", kill.role);
  if (kill.role != "trainer" && kill.role != "server" && kill.role != "coordinator") {
    reader.Fail("role", "must be trainer, server or coordinator");
  }
  reader.Read("stage", kill.stage);
  return kill;
}

ScenarioStep ReadStep(const Reader& reader) {
  ScenarioStep step;
  step.at_percent = reader.Number("atPercent", -1);
  if (step.at_percent < 0 || step.at_percent > 100) reader.Fail("atPercent", "must be between 0 and 100");
  reader.Read("say", step.say);
  reader.Read("prices", step.prices);
  if (reader.Has("kill")) step.kill = ReadKill(reader.Child("kill"));
  if (step.prices.empty() && !step.kill) reader.Fail("prices", "the step needs prices or kill");
  return step;
}

Expectations ReadExpectations(const Reader& reader) {
  Expectations expect;
  for (const model::Task task : {model::Task::kBinary, model::Task::kRegression}) {
    for (const std::string& name : model::TaskMetrics(task)) {
      if (reader.Has(name)) expect.metrics[model::MetricKey(name)] = reader.Number(name, 0);
    }
  }
  reader.Read("rescales", expect.rescales);
  reader.Read("recoveries", expect.recoveries);
  return expect;
}

}  // namespace

absl::StatusOr<Scenario> ParseScenario(std::string_view yaml) {
  MEDLEY_ASSIGN_OR_RETURN(const Reader root, Reader::Parse(yaml, "scenario"));
  Scenario scenario;
  root.Read("prices", scenario.prices);
  if (root.Has("goalPercent")) {
    scenario.goal_percent = root.Number("goalPercent", 0);
    if (!(scenario.goal_percent > 0 && scenario.goal_percent <= 100)) {
      root.Fail("goalPercent", "must be greater than 0 and at most 100");
    }
  }
  if (root.Has("mixSavesPercent")) {
    scenario.mix_saves_percent = root.Number("mixSavesPercent", 0);
    if (!(scenario.mix_saves_percent > 0 && scenario.mix_saves_percent < 100)) {
      root.Fail("mixSavesPercent", "must be greater than 0 and less than 100");
    }
    if (scenario.goal_percent <= 0)
      root.Fail("mixSavesPercent", "needs goalPercent, for machines that have no such goal");
  }
  double last = 0;
  for (const Reader& reader : root.List("steps")) {
    ScenarioStep step = ReadStep(reader);
    if (step.at_percent < last)
      reader.Fail("atPercent", "must not be less than in the step before, steps must be in order");
    last = step.at_percent;
    scenario.steps.push_back(std::move(step));
  }
  if (root.Has("expect")) scenario.expect = ReadExpectations(root.Child("expect"));
  MEDLEY_RETURN_IF_ERROR(root.Finish());
  return scenario;
}

}  // namespace medley::cli
