// Which devices reduce together, and which ranks of a group a layout's replicas are.
#include "worker/trainer/group_links.h"
#include "common/model/allreduce.h"
#include "common/model/allreduce_algorithm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "worker/collective/key_value_store.h"

namespace medley::worker {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// One block a layout; those with `reduces` add gradients.
program::Program WithLayouts(const std::vector<std::vector<int>>& layouts, const std::vector<bool>& reduces) {
  program::Program program;
  for (size_t l = 0; l < layouts.size(); ++l) {
    program.layouts.push_back({layouts[l], {}});
    program::Block& block = program.blocks.emplace_back();
    block.layout = static_cast<int>(l);
    block.group = reduces[l] ? static_cast<int>(l) : -1;
  }
  return program;
}

TEST(GroupLinksTest, LayoutsOfTheSameDevicesShareAGroup) {
  const auto sets =
      DevicesThatReduce(WithLayouts({{0}, {2, 0}, {1, 2}, {0, 2}, {0, 1, 2}}, {false, true, true, true, false}));
  ASSERT_EQ(sets.size(), 2U);
  EXPECT_THAT(sets[0].members, ElementsAre(2, 0));
  EXPECT_THAT(sets[0].layouts, ElementsAre(1, 3));
  EXPECT_THAT(sets[1].members, ElementsAre(1, 2));
  EXPECT_THAT(sets[1].layouts, ElementsAre(2));
  EXPECT_THAT(DevicesThatReduce(WithLayouts({{0}}, {false})), IsEmpty());
}

TEST(GroupLinksTest, ManySetsShareOneGroup) {
  std::vector<std::vector<int>> layouts;
  for (int a = 0; a < 7; ++a) {
    for (int b = a + 1; b < 7; ++b) layouts.push_back({b, a});
  }
  ASSERT_GT(layouts.size(), model::kMaxReducing);
  const auto sets = DevicesThatReduce(WithLayouts(layouts, std::vector<bool>(layouts.size(), true)));
  ASSERT_EQ(sets.size(), 1U);
  EXPECT_THAT(sets[0].members, ElementsAre(0, 1, 2, 3, 4, 5, 6));
  EXPECT_EQ(sets[0].layouts.size(), layouts.size());
}

// Ranks 0 to 3 are devices 5, 7, 8 and 9. Two layouts reduce among some of them: the one in groups, the other by its
// root.
TEST(GroupLinksTest, ALayoutReducesAmongItsOwnRanks) {
  const std::vector<int> members = {5, 7, 8, 9};
  const program::Layout three{{9, 5, 8}, {}}, two{{7, 9}, {}};
  const program::Group grouped{
      0,
      {{{{0, 1}, {2}}, model::AllreduceAlgorithm::kLinear}, {{{0, 2}}, model::AllreduceAlgorithm::kRecursiveDoubling}},
      0};
  const program::Group rooted{1, {{{{0, 1}}, model::AllreduceAlgorithm::kCentralized}}, 1};
  MemoryStore store;
  std::vector<std::unique_ptr<Group>> open(members.size());  // until all have their sums, as in a generation
  std::vector<std::vector<float>> sums(members.size());
  {
    std::vector<std::jthread> ranks;
    for (int rank = 0; rank < 4; ++rank) {
      ranks.emplace_back([&, rank] {
        GroupOptions options{.name = "g", .rank = rank, .members = {"a", "b", "c", "d"}, .address = "127.0.0.1"};
        auto group = Group::Connect(options, store, {});
        ASSERT_TRUE(group.ok()) << group.status();
        Group& connected = *(open[static_cast<size_t>(rank)] = *std::move(group));
        const int device = members[static_cast<size_t>(rank)];
        GroupReducer reducer({RouteOver(connected, members, three), RouteOver(connected, members, two)});
        std::vector<float>& sum = sums[static_cast<size_t>(rank)];
        for (const auto& [layout, reduction] : {std::pair(&three, &grouped), std::pair(&two, &rooted)}) {
          if (std::ranges::find(layout->devices, device) == layout->devices.end()) continue;
          std::vector<float> value = {static_cast<float>(1 << rank)};
          const absl::Status status = reducer.SumAll(1, 0, *reduction, value, {});
          ASSERT_TRUE(status.ok()) << status;
          sum.push_back(value.front());
        }
      });
    }
  }
  EXPECT_THAT(sums[0], ElementsAre(1 + 4 + 8));
  EXPECT_THAT(sums[1], ElementsAre(2 + 8));
  EXPECT_THAT(sums[2], ElementsAre(1 + 4 + 8));
  EXPECT_THAT(sums[3], ElementsAre(1 + 4 + 8, 2 + 8));
}

// Three ranks begin the sums of three servers in different orders, for several steps. One is of several pieces.
TEST(GroupLinksTest, ServersAddAtTheSameTime) {
  const program::Layout all{{0, 1, 2}, {}};
  std::vector<program::Group> groups;
  for (int root = 0; root < 3; ++root) {
    groups.push_back({0, {{{{0, 1, 2}}, model::AllreduceAlgorithm::kCentralized}}, root, true});
  }
  MemoryStore store;
  std::vector<std::unique_ptr<Group>> open(3);  // until all have their sums, as in a generation
  std::vector<std::vector<float>> sums(3, std::vector<float>(9));
  {
    std::vector<std::jthread> ranks;
    for (int rank = 0; rank < 3; ++rank) {
      ranks.emplace_back([&, rank] {
        GroupOptions options{.name = "g", .rank = rank, .members = {"a", "b", "c"}, .address = "127.0.0.1"};
        auto group = Group::Connect(options, store, {});
        ASSERT_TRUE(group.ok()) << group.status();
        Group& connected = *(open[static_cast<size_t>(rank)] = *std::move(group));
        GroupReducer reducer({RouteOver(connected, {0, 1, 2}, all)});
        std::vector<std::jthread> servers;
        for (int i = 0; i < 3; ++i) {
          servers.emplace_back([&, root = (rank + i) % 3] {
            for (int step = 0; step < 3; ++step) {
              const size_t count = root == 1 ? 12 * (size_t{1} << 18) + 5 : 1;  // 16 pieces, the last shorter
              std::vector<float> value(count, static_cast<float>((rank + 1) * (root + 1) + step));
              const auto& reduction = groups[static_cast<size_t>(root)];
              const absl::Status status = reducer.SumAll(step, root, reduction, value, {});
              ASSERT_TRUE(status.ok()) << status;
              const auto [least, most] = std::ranges::minmax(value);
              ASSERT_EQ(least, most);
              sums[static_cast<size_t>(rank)][static_cast<size_t>(3 * root + step)] = least;
            }
          });
        }
      });
    }
  }
  for (const std::vector<float>& sum : sums) EXPECT_THAT(sum, ElementsAre(6, 9, 12, 12, 15, 18, 18, 21, 24));
}

}  // namespace
}  // namespace medley::worker
