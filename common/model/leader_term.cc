#include "common/model/leader_term.h"

#include <charconv>
#include <string>
#include <string_view>

#include "common/base/details.h"
#include "common/base/status.h"

namespace medley::model {
namespace {

constexpr std::string_view kPrefix = "leader-term=";

}  // namespace

absl::Status StaleTerm(int64_t term, int64_t seen) {
  return base::WithDetails(
      base::FailedPrecondition("leader term {} is stale: a request of leader term {} was served before", term, seen),
      std::string(kPrefix) + std::to_string(seen));
}

std::optional<int64_t> NewerTerm(const absl::Status& status) {
  const std::string details = base::Details(status);
  if (status.code() != absl::StatusCode::kFailedPrecondition || !details.starts_with(kPrefix)) return std::nullopt;
  int64_t seen = 0;
  const char* const end = details.data() + details.size();
  const auto [rest, error] = std::from_chars(details.data() + kPrefix.size(), end, seen);
  if (error != std::errc() || rest != end) return std::nullopt;
  return seen;
}

}  // namespace medley::model
