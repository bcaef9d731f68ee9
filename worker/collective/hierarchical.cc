#include <algorithm>
#include <vector>

#include "common/base/status.h"
#include "worker/collective/algorithms.h"

namespace medley::worker {
namespace {

// The group of the level that contains the rank; null if none does.
const std::vector<int>* GroupOf(const model::ReduceLevel& level, int rank) {
  const auto found = std::find_if(level.groups.begin(), level.groups.end(), [&](const std::vector<int>& group) {
    return std::find(group.begin(), group.end(), rank) != group.end();
  });
  return found == level.groups.end() ? nullptr : &*found;
}

}  // namespace

absl::Status SumOverLevels(Messages& messages, std::span<float> values, std::span<const model::ReduceLevel> levels,
                           int root) {
  std::vector<const std::vector<int>*> groups;  // in which this rank adds, innermost first
  for (const model::ReduceLevel& level : levels) {
    const std::vector<int>* group = GroupOf(level, messages.rank());
    if (group == nullptr) break;  // only the first of each group goes on
    groups.push_back(group);
    Team team(messages, *group);
    const auto at = std::find(group->begin(), group->end(), root);
    const int team_root = at == group->end() ? 0 : static_cast<int>(at - group->begin());
    MEDLEY_RETURN_IF_ERROR(SumOver(team, values, level.algorithm, team_root));
  }
  // Those who added at a higher level tell the sum to their groups below. The outermost group has it already.
  for (size_t l = std::min(groups.size(), levels.size() - 1); l-- > 0;) {
    Team team(messages, *groups[l]);
    MEDLEY_RETURN_IF_ERROR(BroadcastOver(team, std::as_writable_bytes(values), 0));
  }
  return absl::OkStatus();
}

}  // namespace medley::worker
