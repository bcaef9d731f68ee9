#include "scheduler-service/planner/hierarchy.h"

#include <algorithm>
#include <cmath>

#include "common/model/placement.h"

namespace medley::sched {
namespace {

constexpr int kFewestGrouped = 4;  // among fewer replicas, groups only add rounds

// Splits the units [first, first + units) of a pool into `groups` groups, larger ones first.
void AddGroups(const std::string& pool, int first, int units, int groups, model::HierarchyLevel& level) {
  int begin = 0;
  for (int g = 0; g < groups; ++g) {
    const int end = begin + units / groups + (g < units % groups ? 1 : 0);
    std::vector<std::string>& group = level.groups.emplace_back();
    for (int unit = begin; unit < end; ++unit) group.push_back(model::StageDeviceId(pool, first + unit));
    begin = end;
  }
}

}  // namespace

std::vector<model::HierarchyLevel> MakeHierarchy(model::Grouping grouping, const std::vector<model::Group>& pools,
                                                 const std::map<std::string, int>& first) {
  if (grouping == model::Grouping::kNone) return {};
  int replicas = 0;
  for (const model::Group& pool : pools) replicas += pool.units;
  if (grouping != model::Grouping::kPool && replicas < kFewestGrouped) return {};
  const double size = std::round(std::sqrt(replicas));
  model::HierarchyLevel level;
  for (const model::Group& pool : pools) {
    const auto before = first.find(pool.pool);
    const int groups =
        grouping == model::Grouping::kPool ? 1 : std::max(1, static_cast<int>(std::lround(pool.units / size)));
    AddGroups(pool.pool, before == first.end() ? 0 : before->second, pool.units, groups, level);
  }
  const auto groups = static_cast<int>(level.groups.size());
  return groups < 2 || groups == replicas ? std::vector<model::HierarchyLevel>{} : std::vector{std::move(level)};
}

}  // namespace medley::sched
