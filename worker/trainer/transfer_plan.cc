#include "worker/trainer/transfer_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "common/base/status.h"

namespace medley::worker {
namespace {

absl::StatusOr<std::vector<int>> ParseList(std::string_view text) {
  std::vector<int> values;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(','));
    int value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size()) {
      return base::InvalidArgument("state transfer: '{}' is not an operation number", word);
    }
    values.push_back(value);
    text.remove_prefix(std::min(text.size(), word.size() + 1));
  }
  return values;
}

}  // namespace

std::string FormatHolding(const Holding& holding) {
  return fmt::format("{};{}", fmt::join(holding.holds, ","), fmt::join(holding.needs, ","));
}

absl::StatusOr<Holding> ParseHolding(std::string_view text) {
  const size_t semicolon = text.find(';');
  if (semicolon == std::string_view::npos)
    return base::InvalidArgument("state transfer: '{}' has no ';' between held and needed operations", text);
  Holding holding;
  MEDLEY_ASSIGN_OR_RETURN(holding.holds, ParseList(text.substr(0, semicolon)));
  MEDLEY_ASSIGN_OR_RETURN(holding.needs, ParseList(text.substr(semicolon + 1)));
  return holding;
}

absl::StatusOr<std::vector<Move>> PlanMoves(std::span<const Holding> members) {
  std::vector<Move> moves;
  for (size_t to = 0; to < members.size(); ++to) {
    for (const int operation : members[to].needs) {
      const auto holder = std::find_if(members.begin(), members.end(), [&](const Holding& h) {
        return std::find(h.holds.begin(), h.holds.end(), operation) != h.holds.end();
      });
      if (holder == members.end()) {
        return base::FailedPrecondition("state transfer: no member holds the state of operation {}", operation);
      }
      moves.push_back({operation, static_cast<int>(holder - members.begin()), static_cast<int>(to)});
    }
  }
  std::sort(moves.begin(), moves.end(),
            [](const Move& a, const Move& b) { return std::pair(a.operation, a.to) < std::pair(b.operation, b.to); });
  return moves;
}

}  // namespace medley::worker
