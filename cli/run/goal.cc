#include "cli/run/goal.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "operator/api/reasons.h"

namespace medley::cli {
namespace {

constexpr double kUnreachable = 1e12;  // samples/s

}  // namespace

void AskForMost(kube::Object& job) {
  kube::MergePatch(job.mutable_json(),
                   {{"spec", {{"objective", {{"minThroughput", static_cast<int64_t>(kUnreachable)}}}}}});
}

std::optional<double> MostReached(std::string_view reason, std::string_view message) {
  constexpr std::string_view kWords = "reaches at most ";
  const size_t at = message.find(kWords);
  if (reason != ToString(ops::Reason::kInfeasible) || at == std::string_view::npos) return std::nullopt;
  if (message.find(fmt::format("minThroughput is {:.0f}", kUnreachable)) == std::string_view::npos) return std::nullopt;
  const char* number = message.data() + at + kWords.size();
  double most = 0;
  const std::from_chars_result read = std::from_chars(number, message.data() + message.size(), most);
  if (read.ec != std::errc() || !(most > 0)) return std::nullopt;
  return most;
}

double GoalOf(double most, double percent) { return std::max(1.0, std::floor(most * percent / 100)); }

}  // namespace medley::cli
