#include "cli/run/scenario.h"

#include <initializer_list>
#include <nlohmann/json.hpp>

#include "common/base/status.h"
#include "common/model/convert.h"

namespace medley::cli {
namespace {

using Json = nlohmann::json;

absl::Status CheckFields(const Json& object, const std::string& path, std::initializer_list<const char*> known) {
  if (!object.is_object()) return base::InvalidArgument("{}: must be an object", path);
  for (const auto& [key, value] : object.items()) {
    bool found = false;
    for (const char* name : known) found = found || key == name;
    if (!found) return base::InvalidArgument("{}.{}: unknown field", path, key);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Text(const Json& object, const std::string& path, const char* field) {
  const auto it = object.find(field);
  if (it == object.end()) return std::string();
  if (!it->is_string()) return base::InvalidArgument("{}.{}: must be a string", path, field);
  return it->get<std::string>();
}

absl::StatusOr<std::optional<double>> Number(const Json& object, const std::string& path, const char* field) {
  const auto it = object.find(field);
  if (it == object.end()) return std::optional<double>();
  if (!it->is_number()) return base::InvalidArgument("{}.{}: must be a number", path, field);
  return std::optional<double>(it->get<double>());
}

absl::StatusOr<KillStep> ParseKill(const Json& json, const std::string& path) {
  MEDLEY_RETURN_IF_ERROR(CheckFields(json, path, {"role", "stage"}));
  KillStep kill;
  MEDLEY_ASSIGN_OR_RETURN(kill.role, Text(json, path, "role"));
  if (kill.role != "trainer" && kill.role != "server" && kill.role != "coordinator") {
    return base::InvalidArgument("{}.role: must be trainer, server or coordinator", path);
  }
  MEDLEY_ASSIGN_OR_RETURN(const auto stage, Number(json, path, "stage"));
  if (stage) kill.stage = static_cast<int>(*stage);
  return kill;
}

absl::StatusOr<ScenarioStep> ParseStep(const Json& json, const std::string& path) {
  MEDLEY_RETURN_IF_ERROR(CheckFields(json, path, {"atPercent", "say", "prices", "kill"}));
  ScenarioStep step;
  MEDLEY_ASSIGN_OR_RETURN(const auto at, Number(json, path, "atPercent"));
  if (!at || *at < 0 || *at > 100) return base::InvalidArgument("{}.atPercent: must be between 0 and 100", path);
  step.at_percent = *at;
  MEDLEY_ASSIGN_OR_RETURN(step.say, Text(json, path, "say"));
  MEDLEY_ASSIGN_OR_RETURN(step.prices, Text(json, path, "prices"));
  if (json.contains("kill")) {
    MEDLEY_ASSIGN_OR_RETURN(step.kill, ParseKill(json["kill"], path + ".kill"));
  }
  if (step.prices.empty() && !step.kill) return base::InvalidArgument("{}: the step needs prices or kill", path);
  return step;
}

absl::StatusOr<Expectations> ParseExpect(const Json& json) {
  const std::string path = "expect";
  MEDLEY_RETURN_IF_ERROR(CheckFields(json, path, {"auc", "logLoss", "rescales", "recoveries"}));
  Expectations expect;
  MEDLEY_ASSIGN_OR_RETURN(expect.auc, Number(json, path, "auc"));
  MEDLEY_ASSIGN_OR_RETURN(expect.log_loss, Number(json, path, "logLoss"));
  MEDLEY_ASSIGN_OR_RETURN(const auto rescales, Number(json, path, "rescales"));
  MEDLEY_ASSIGN_OR_RETURN(const auto recoveries, Number(json, path, "recoveries"));
  expect.rescales = static_cast<int>(rescales.value_or(0));
  expect.recoveries = static_cast<int>(recoveries.value_or(0));
  return expect;
}

}  // namespace

absl::StatusOr<Scenario> ParseScenario(std::string_view yaml) {
  MEDLEY_ASSIGN_OR_RETURN(const std::string text, model::YamlToJson(yaml));
  const Json json = Json::parse(text, nullptr, false);
  MEDLEY_RETURN_IF_ERROR(CheckFields(json, "scenario", {"prices", "steps", "expect"}));
  Scenario scenario;
  MEDLEY_ASSIGN_OR_RETURN(scenario.prices, Text(json, "scenario", "prices"));
  double last = 0;
  const Json steps = json.value("steps", Json::array());
  if (!steps.is_array()) return base::InvalidArgument("scenario.steps: must be a list");
  for (size_t i = 0; i < steps.size(); ++i) {
    const std::string path = fmt::format("steps[{}]", i);
    MEDLEY_ASSIGN_OR_RETURN(ScenarioStep step, ParseStep(steps[i], path));
    if (step.at_percent < last)
      return base::InvalidArgument("{}.atPercent: must not be less than in the step before, steps must be in order",
                                   path);
    last = step.at_percent;
    scenario.steps.push_back(std::move(step));
  }
  if (json.contains("expect")) {
    MEDLEY_ASSIGN_OR_RETURN(scenario.expect, ParseExpect(json["expect"]));
  }
  return scenario;
}

}  // namespace medley::cli
