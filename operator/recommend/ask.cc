#include "operator/recommend/ask.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_split.h>
#include <absl/strings/strip.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "operator/recommend/foreign_job.h"
#include "operator/recommend/steps.h"

namespace medley::ops::recommend {
namespace {

constexpr std::string_view kPrefix = "medley.dev/";
constexpr std::array<std::string_view, 9> kAsks = {"throughput", "samples",        "units",
                                                   "pools",      "deadline",       "budget-usd",
                                                   "fastest",    "min-throughput", "max-usd-per-hour"};
constexpr size_t kLongest = 65'536;  // bytes of an annotation that is read
constexpr double kMost = 1e18;

absl::Status CheckNames(const kube::Json& annotations) {
  for (const auto& [name, value] : annotations.items()) {
    if (!name.starts_with(kPrefix)) continue;
    const std::string_view rest = std::string_view(name).substr(kPrefix.size());
    const bool known = std::ranges::find(kAsks, rest) != kAsks.end() || name == kTargetAnnotation ||
                       name == kChosenAnnotation || name == kChosenByAnnotation || name == kResumedAnnotation;
    if (!known) return base::InvalidArgument("annotation {}: unknown; see docs/use/recommender.md", name);
    if (!value.is_string() || value.get_ref<const std::string&>().size() > kLongest) {
      return base::InvalidArgument("annotation {}: longer than {} bytes", name, kLongest);
    }
  }
  return absl::OkStatus();
}

std::string Text(const kube::Object& job, std::string_view name) {
  return std::string(absl::StripAsciiWhitespace(job.annotation(std::string(kPrefix) + std::string(name))));
}

// Sets `out` if there is such an annotation.
absl::Status Positive(const kube::Object& job, std::string_view name, double& out) {
  const std::string text = Text(job, name);
  if (text.empty()) return absl::OkStatus();
  if (!absl::SimpleAtod(text, &out) || !(out > 0 && out <= kMost)) {
    return base::InvalidArgument("annotation {}{}: '{}' is not a number above 0, at most {:g}", kPrefix, name, text,
                                 kMost);
  }
  return absl::OkStatus();
}

bool IsNodes(const std::string& text, int& out) {
  return absl::SimpleAtoi(text, &out) && out >= 1 && out <= kMostNodes;
}

// The parts of a list, without the spaces around them.
std::vector<std::string> Parts(const std::string& list) {
  std::vector<std::string> parts = absl::StrSplit(list, ',', absl::SkipWhitespace());
  for (std::string& part : parts) absl::StripAsciiWhitespace(&part);
  return parts;
}

absl::StatusOr<PoolSpeed> ReadSpeed(const std::string& pool, const kube::Json& json) {
  const auto wrong = [&](const std::string& what) {
    return base::InvalidArgument("annotation {}throughput: {}: {}", kPrefix, pool, what);
  };
  const auto rate = [](const kube::Json& value) {
    const double number = value.is_number() ? value.get<double>() : 0;
    return number > 0 && number <= kMost ? number : 0;
  };
  PoolSpeed speed;
  if (!json.is_object()) {
    speed.of_one = rate(json);
    if (speed.of_one <= 0) return wrong("needs samples/s of one node, or {\"nodes\": samples/s, ...}");
    return speed;
  }
  for (const auto& [text, value] : json.items()) {
    int nodes = 0;
    if (!IsNodes(text, nodes))
      return wrong(fmt::format("'{}' is not a number of nodes from 1 to {}", text, kMostNodes));
    speed.measured[nodes] = rate(value);
    if (speed.measured[nodes] <= 0) return wrong(fmt::format("{} nodes: needs samples/s above 0", nodes));
  }
  if (speed.measured.empty()) return wrong("names no number of nodes");
  return speed;
}

absl::Status ReadSpeeds(const kube::Object& job, Ask& ask) {
  const std::string text = Text(job, "throughput");
  if (text.empty()) {
    return base::InvalidArgument(
        "annotation {}throughput: needed: samples/s of one node by pool, such as {{\"gpu\": 1300}}", kPrefix);
  }
  const kube::Json json = kube::Json::parse(text, nullptr, false);
  if (!json.is_object() || json.empty()) {
    return base::InvalidArgument("annotation {}throughput: not a JSON object of samples/s by pool", kPrefix);
  }
  for (const auto& [pool, value] : json.items()) {
    MEDLEY_ASSIGN_OR_RETURN(ask.speeds[pool], ReadSpeed(pool, value));
  }
  return absl::OkStatus();
}

absl::Status ReadLists(const kube::Object& job, Ask& ask) {
  for (const std::string& part : Parts(Text(job, "units"))) {
    int nodes = 0;
    if (!IsNodes(part, nodes)) {
      return base::InvalidArgument("annotation {}units: '{}' is not a number of nodes from 1 to {}", kPrefix, part,
                                   kMostNodes);
    }
    ask.sizes.push_back(nodes);
  }
  std::ranges::sort(ask.sizes);
  ask.sizes.erase(std::ranges::unique(ask.sizes).begin(), ask.sizes.end());
  for (const std::string& name : Parts(Text(job, "pools"))) {
    if (!ask.speeds.contains(name)) {
      return base::InvalidArgument("annotation {}pools: {}throughput has no samples/s of pool '{}'", kPrefix, kPrefix,
                                   name);
    }
    if (std::ranges::find(ask.pools, name) == ask.pools.end()) ask.pools.push_back(name);
  }
  if (!ask.pools.empty()) return absl::OkStatus();
  for (const auto& [pool, speed] : ask.speeds) ask.pools.push_back(pool);
  return absl::OkStatus();
}

absl::Status ReadGoals(const kube::Object& job, Ask& ask) {
  MEDLEY_RETURN_IF_ERROR(Positive(job, "samples", ask.samples));
  MEDLEY_RETURN_IF_ERROR(Positive(job, "budget-usd", ask.bounds.budget_usd));
  MEDLEY_RETURN_IF_ERROR(Positive(job, "min-throughput", ask.bounds.min_throughput));
  MEDLEY_RETURN_IF_ERROR(Positive(job, "max-usd-per-hour", ask.bounds.max_cost_per_hour));
  if (const std::string text = Text(job, "deadline"); !text.empty()) {
    const auto deadline = base::ParseDuration(text);
    if (!deadline.ok() || *deadline <= base::nanoseconds(0)) {
      return base::InvalidArgument("annotation {}deadline: '{}' is not a duration such as 12h", kPrefix, text);
    }
    ask.bounds.deadline_seconds = base::ToSeconds(*deadline);
  }
  const std::string fastest = Text(job, "fastest");
  if (!fastest.empty() && fastest != "true" && fastest != "false") {
    return base::InvalidArgument("annotation {}fastest: '{}' is neither true nor false", kPrefix, fastest);
  }
  ask.objective = fastest == "true" ? model::Objective::kTime
                  : ask.samples > 0 ? model::Objective::kCost
                                    : model::Objective::kCostPerHour;
  if (ask.samples <= 0 && (ask.bounds.deadline_seconds > 0 || ask.bounds.budget_usd > 0)) {
    return base::InvalidArgument("annotation {}samples: needed with a deadline or a budget", kPrefix);
  }
  return absl::OkStatus();
}

}  // namespace

double PoolSpeed::Of(int nodes) const {
  const auto found = measured.find(nodes);
  return found != measured.end() ? found->second : of_one * nodes;
}

absl::StatusOr<Ask> ReadAsk(const kube::Object& job) {
  const kube::Json& annotations = job.At("/metadata/annotations");
  if (annotations.is_object()) MEDLEY_RETURN_IF_ERROR(CheckNames(annotations));
  Ask ask;
  MEDLEY_RETURN_IF_ERROR(ReadSpeeds(job, ask));
  MEDLEY_RETURN_IF_ERROR(ReadLists(job, ask));
  MEDLEY_RETURN_IF_ERROR(ReadGoals(job, ask));
  return ask;
}

}  // namespace medley::ops::recommend
