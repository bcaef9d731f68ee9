#include "scheduler-service/feeds/prometheus_parser.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "common/base/status.h"
#include "common/document/reader.h"
#include "scheduler-service/feeds/answer_limits.h"

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

absl::StatusOr<PromSample> ParseSample(const document::Reader& item) {
  PromSample sample;
  item.Require({"metric", "value"});
  const std::string where = item.path();
  const document::Reader labels = item.Child("metric");
  const json value = item.Raw("value");
  MEDLEY_RETURN_IF_ERROR(item.status());
  for (const auto& [name, text] : labels.tree().items()) {
    if (!text.is_string()) return base::InvalidArgument("{}.metric.{}: must be a string", where, Quoted(name));
    sample.labels.emplace(name, text.get<std::string>());
  }
  if (!value.is_array() || value.size() != 2 || !value.at(0).is_number() || !value.at(1).is_string()) {
    return base::InvalidArgument("{}.value: must be [time, \"value\"]", where);
  }
  sample.evaluated = value.at(0).get<double>();
  if (!std::isfinite(sample.evaluated) || sample.evaluated < 0 || sample.evaluated > 1e11) {
    return base::InvalidArgument("{}.value[0]: {} is not a time", where, sample.evaluated);
  }
  MEDLEY_ASSIGN_OR_RETURN(sample.value, ParseValue(value.at(1).get<std::string>(), where + ".value[1]"));
  return sample;
}

absl::Status ErrorAnswer(const document::Reader& answer) {
  const std::string type = answer.String("errorType");
  const std::string message = answer.String("error");
  MEDLEY_RETURN_IF_ERROR(answer.status());
  const bool ours = type == "bad_data" || type == "execution";
  return base::MakeStatus(ours ? absl::StatusCode::kInvalidArgument : absl::StatusCode::kUnavailable,
                          "prometheus: " + Quoted(type) + ": " + Quoted(message));
}

}  // namespace

absl::StatusOr<PromVector> ParsePromVector(std::string_view body) {
  MEDLEY_ASSIGN_OR_RETURN(const json tree, document::ParseJson(body, kAnswerLimits));
  const document::Reader answer(tree);
  const std::string status = answer.RequiredString("status");
  MEDLEY_RETURN_IF_ERROR(answer.status());
  if (status == "error") return ErrorAnswer(answer);
  if (status != "success") return base::InvalidArgument("status: must be success or error, is '{}'", Quoted(status));
  answer.Require({"data"});
  const document::Reader data = answer.Child("data");
  const std::string type = data.RequiredString("resultType");
  MEDLEY_RETURN_IF_ERROR(answer.status());
  if (type != "vector") return base::InvalidArgument("data.resultType: must be vector, is '{}'", Quoted(type));
  data.Require({"result"});
  const std::vector<document::Reader> result = data.List("result");
  MEDLEY_RETURN_IF_ERROR(answer.status());
  PromVector out;
  out.samples.reserve(result.size());
  for (const document::Reader& item : result) {
    MEDLEY_ASSIGN_OR_RETURN(PromSample sample, ParseSample(item));
    out.samples.push_back(std::move(sample));
  }
  if (const auto warnings = tree.find("warnings"); warnings != tree.end() && warnings->is_array()) {
    for (const json& warning : *warnings) {
      if (warning.is_string() && out.warnings.size() < 10) out.warnings.push_back(Quoted(warning.get<std::string>()));
    }
  }
  return out;
}

}  // namespace medley::sched
