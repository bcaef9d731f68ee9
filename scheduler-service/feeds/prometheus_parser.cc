#include "scheduler-service/feeds/prometheus_parser.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "common/base/status.h"
#include "scheduler-service/feeds/json_body.h"

namespace medley::sched {
namespace {

using nlohmann::json;

// Parses a value in Prometheus' format: Go's number format, with "NaN", "+Inf" and "-Inf".
absl::StatusOr<double> ParseValue(const std::string& text, const std::string& where) {
  if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (text == "+Inf" || text == "Inf") return std::numeric_limits<double>::infinity();
  if (text == "-Inf") return -std::numeric_limits<double>::infinity();
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    return base::InvalidArgument("{}: '{}' is not a number", where, Quoted(text));
  }
  return value;
}

absl::StatusOr<PromSample> ParseSample(const json& item, const std::string& where) {
  PromSample sample;
  MEDLEY_ASSIGN_OR_RETURN(const json* labels, JsonObject(item, "metric", where));
  for (const auto& [name, value] : labels->items()) {
    if (!value.is_string()) return base::InvalidArgument("{}.metric.{}: not a string", where, Quoted(name));
    sample.labels.emplace(name, value.get<std::string>());
  }
  MEDLEY_ASSIGN_OR_RETURN(const json* value, JsonArray(item, "value", where));
  if (value->size() != 2 || !value->at(0).is_number() || !value->at(1).is_string()) {
    return base::InvalidArgument("{}.value: want [time, \"value\"]", where);
  }
  sample.evaluated = value->at(0).get<double>();
  if (!std::isfinite(sample.evaluated) || sample.evaluated < 0 || sample.evaluated > 1e11) {
    return base::InvalidArgument("{}.value[0]: {} is not a time", where, sample.evaluated);
  }
  MEDLEY_ASSIGN_OR_RETURN(sample.value, ParseValue(value->at(1).get<std::string>(), where + ".value[1]"));
  return sample;
}

absl::Status ErrorAnswer(const json& body) {
  MEDLEY_ASSIGN_OR_RETURN(const std::string type, JsonOptionalString(body, "errorType", "answer"));
  MEDLEY_ASSIGN_OR_RETURN(const std::string message, JsonOptionalString(body, "error", "answer"));
  const bool ours = type == "bad_data" || type == "execution";
  return base::MakeStatus(ours ? absl::StatusCode::kInvalidArgument : absl::StatusCode::kUnavailable,
                          "prometheus: " + Quoted(type) + ": " + Quoted(message));
}

}  // namespace

absl::StatusOr<PromVector> ParsePromVector(std::string_view body) {
  MEDLEY_ASSIGN_OR_RETURN(const json answer, ParseJsonBody(body));
  MEDLEY_ASSIGN_OR_RETURN(const std::string status, JsonString(answer, "status", "answer"));
  if (status == "error") return ErrorAnswer(answer);
  if (status != "success") return base::InvalidArgument("answer.status: '{}'", Quoted(status));
  MEDLEY_ASSIGN_OR_RETURN(const json* data, JsonObject(answer, "data", "answer"));
  MEDLEY_ASSIGN_OR_RETURN(const std::string type, JsonString(*data, "resultType", "data"));
  if (type != "vector") return base::InvalidArgument("data.resultType: '{}', want vector", Quoted(type));
  MEDLEY_ASSIGN_OR_RETURN(const json* result, JsonArray(*data, "result", "data"));
  PromVector out;
  out.samples.reserve(result->size());
  for (size_t i = 0; i < result->size(); ++i) {
    MEDLEY_ASSIGN_OR_RETURN(PromSample sample, ParseSample(result->at(i), fmt::format("data.result[{}]", i)));
    out.samples.push_back(std::move(sample));
  }
  if (const auto warnings = answer.find("warnings"); warnings != answer.end() && warnings->is_array()) {
    for (const json& warning : *warnings) {
      if (warning.is_string() && out.warnings.size() < 10) out.warnings.push_back(Quoted(warning.get<std::string>()));
    }
  }
  return out;
}

}  // namespace medley::sched
