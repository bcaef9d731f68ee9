#include "cli/program_input.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "common/base/status.h"
#include "common/document/parse.h"
#include "common/model/plan_result.h"
#include "common/model/value_text.h"

namespace medley::cli {
namespace {

// The plan of a file that holds one; nullopt: the file holds something to plan.
absl::StatusOr<std::optional<model::ExecutionPlan>> PlanOf(const std::string& text) {
  MEDLEY_ASSIGN_OR_RETURN(const nlohmann::json tree, document::Parse(text));
  if (!tree.is_object()) return std::nullopt;
  if (tree.contains("stages") || tree.contains("placements")) return model::ParseExecutionPlan(text);
  if (!tree.contains("executionPlan")) return std::nullopt;
  MEDLEY_ASSIGN_OR_RETURN(model::PlanResult result, model::ParsePlanResult(text));
  return std::move(result.execution_plan);
}

absl::StatusOr<ProgramInput> ReadPlanOrRequest(const PlanFlags& flags) {
  MEDLEY_ASSIGN_OR_RETURN(const std::string text, ReadText(flags.file));
  MEDLEY_ASSIGN_OR_RETURN(std::optional<model::ExecutionPlan> plan, PlanOf(text));
  if (!plan) {
    if (flags.file == "-") {
      return base::InvalidArgument(
          "standard input holds no execution plan (stages or placements); name the file of what is "
          "to be planned");
    }
    MEDLEY_ASSIGN_OR_RETURN(const Planned planned, PlanFile(flags));
    return InputOf(planned);
  }
  if (flags.profile.empty()) {
    return base::InvalidArgument("the plan names no model: name its profile with --profile (medley profile)");
  }
  ProgramInput input{*std::move(plan), {}, {}, {}};
  MEDLEY_ASSIGN_OR_RETURN(input.profile, ReadProfile(flags.profile));
  return input;
}

void AddNames(ProgramInput& input) {
  for (const model::Layer& layer : input.profile.model.layers) input.names.push_back(layer.name);
}

}  // namespace

absl::StatusOr<ProgramInput> InputOf(const Planned& planned) {
  if (!planned.result.execution_plan) {
    const std::string why = planned.result.reasons.empty() ? "" : ": " + planned.result.reasons[0].message;
    return base::FailedPrecondition("no plan is feasible{}", why);
  }
  ProgramInput input{*planned.result.execution_plan, {}, {}, {}};
  if (planned.request.on_devices()) {
    MEDLEY_ASSIGN_OR_RETURN(input.links, sched::ClusterLinks::Make(planned.request.cluster));
  }
  input.profile = model::ProfileOf(planned.request);
  AddNames(input);
  return input;
}

absl::StatusOr<ProgramInput> ReadProgramInput(const PlanFlags& flags) {
  auto input = ReadPlanOrRequest(flags);
  if (!input.ok()) return base::Annotate(input.status(), flags.file);
  if (input->names.empty()) AddNames(*input);
  return input;
}

}  // namespace medley::cli
