#include "common/model/progress_pattern.h"

#include <re2/re2.h>

#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

#include "common/base/status.h"

namespace medley::model {
namespace {

constexpr int64_t kMostMemory = 1 << 20;  // of the compiled expression, bytes

template <typename Number>
std::optional<Number> NumberIn(re2::StringPiece text) {
  Number number = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  if (text.empty() || error != std::errc() || at != end) return std::nullopt;
  return number;
}

}  // namespace

absl::StatusOr<ProgressPattern> ProgressPattern::Make(const std::string& expression) {
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kMostMemory);
  auto compiled = std::make_shared<const re2::RE2>(expression, options);
  if (!compiled->ok()) return base::InvalidArgument("'{}' is no regular expression: {}", expression, compiled->error());
  const auto& groups = compiled->NamedCapturingGroups();
  const auto step = groups.find("step"), loss = groups.find("loss");
  if (step == groups.end()) {
    return base::InvalidArgument("'{}' has no group (?P<step>...), which finds the number of the step", expression);
  }
  ProgressPattern pattern;
  pattern.groups_ = 1 + compiled->NumberOfCapturingGroups();
  pattern.step_ = step->second;
  pattern.loss_ = loss == groups.end() ? 0 : loss->second;
  pattern.expression_ = std::move(compiled);
  return pattern;
}

std::optional<StepReport> ProgressPattern::Read(std::string_view line) const {
  const re2::StringPiece text(line.data(), line.size());
  std::vector<re2::StringPiece> found(static_cast<size_t>(groups_));
  if (!expression_->Match(text, 0, text.size(), re2::RE2::UNANCHORED, found.data(), groups_)) return std::nullopt;
  const auto step = NumberIn<int64_t>(found[static_cast<size_t>(step_)]);
  if (!step || *step < 1) return std::nullopt;
  StepReport report{*step, std::nullopt};
  if (loss_ == 0) return report;
  const auto loss = NumberIn<double>(found[static_cast<size_t>(loss_)]);
  if (loss && std::isfinite(*loss)) report.loss = loss;
  return report;
}

}  // namespace medley::model
