#include "common/model/field_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/model/job_schema.h"

namespace medley::model {
namespace {

const nlohmann::json& SchemaOf(std::string_view path) {
  const nlohmann::json* at = &JobSchema();
  const auto go = [&](const char* keyword) {
    MEDLEY_CHECK(at->contains(keyword), "the schema of TrainingJob has no " + std::string(path));
    at = &at->at(keyword);
  };
  for (size_t i = path.find('.'); i < path.size();) {  // after "spec"
    if (path[i] == '.') {
      const size_t end = std::min(path.find_first_of(".[{", i + 1), path.size());
      go("properties");
      go(std::string(path.substr(i + 1, end - i - 1)).c_str());
      i = end;
    } else {
      go(path[i] == '[' ? "items" : "additionalProperties");
      i = path.find_first_of("]}", i) + 1;
    }
  }
  return *at;
}

std::string Shown(double value) {
  constexpr double kExact = 9007199254740992;  // 2^53
  return value == std::floor(value) && std::abs(value) <= kExact ? fmt::format("{:.0f}", value)
                                                                 : fmt::format("{}", value);
}

}  // namespace

absl::Status OneOf(std::string_view path, std::string_view value) {
  const auto known = SchemaOf(path).at("enum").get<std::vector<std::string>>();
  if (std::ranges::find(known, value) != known.end()) return absl::OkStatus();
  return base::InvalidArgument("{}: '{}' is not one of {}", path, value, fmt::join(known, ", "));
}

absl::Status InBounds(std::string_view path, double value) {
  const nlohmann::json& schema = SchemaOf(path);
  const auto low = schema.at("minimum").get<double>(), high = schema.at("maximum").get<double>();
  if (schema.value("exclusiveMinimum", false) && !(value > low)) {
    return base::InvalidArgument("{}: {} is not above {}", path, Shown(value), Shown(low));
  }
  const bool below = schema.value("exclusiveMaximum", false);
  if (value >= low && (below ? value < high : value <= high)) return absl::OkStatus();
  if (below) return base::InvalidArgument("{}: {} is not in [{}, {})", path, Shown(value), Shown(low), Shown(high));
  return base::InvalidArgument("{}: {} is not between {} and {}", path, Shown(value), Shown(low), Shown(high));
}

absl::Status ItemsInBounds(std::string_view path, size_t items) {
  const nlohmann::json& schema = SchemaOf(path);
  const auto low = schema.value("minItems", size_t{0}), high = schema.at("maxItems").get<size_t>();
  if (items >= low && items <= high) return absl::OkStatus();
  return base::InvalidArgument("{}: has {} items, but must have from {} to {}", path, items, low, high);
}

double Most(std::string_view path) { return SchemaOf(path).at("maximum").get<double>(); }

}  // namespace medley::model
