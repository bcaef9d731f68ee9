#include "scheduler-service/hierarchy/groups.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>

#include "scheduler-service/hierarchy/ring_order.h"

namespace medley::sched {
namespace {

using testing::ElementsAre;

TEST(GroupsTest, MagnitudesAreCountedFromTheLeast) {
  EXPECT_EQ(Magnitude(1, 1), 0);
  EXPECT_EQ(Magnitude(3, 1), 0);
  EXPECT_EQ(Magnitude(9.9, 1), 1);  // 9.9 and 10.1 are alike, whatever the unit
  EXPECT_EQ(Magnitude(10.1, 1), 1);
  EXPECT_EQ(Magnitude(100, 1), 2);
  EXPECT_EQ(Magnitude(0, 1), 0);
}

// Table 4.1: four groups, two of them an order of magnitude slower, behind slow connections.
TEST(GroupsTest, TheClusterOfTable41) {
  std::vector<int> devices(14);
  std::iota(devices.begin(), devices.end(), 0);
  const auto slow = [](int d) { return d >= 8; };
  const auto cost = [&](int a, int b) { return slow(a) || slow(b) ? 10.0 : 1.0; };
  const auto seconds = [&](int d) { return slow(d) ? (d >= 11 ? 120.0 : 12.0) : 1.0; };
  const auto by_links = GroupsByLinks(devices, cost);
  ASSERT_EQ(by_links.size(), 2u);
  EXPECT_EQ(by_links[0].size(), 7u);  // nodes 0 to 7 together, each slow one alone
  EXPECT_EQ(by_links[1].size(), 1u);
  EXPECT_THAT(DividedByPower(by_links[1], seconds),
              ElementsAre(ElementsAre(0, 1, 2, 3, 4, 5, 6, 7), ElementsAre(8, 9, 10), ElementsAre(11, 12, 13)));
}

// Algorithm 1 as printed compares a worker with its neighbour in the list only.
TEST(GroupsTest, TheOrderOfWorkersDoesNotMatter) {
  base::Rng rng(11);
  for (int round = 0; round < 100; ++round) {
    const size_t n = 2 + rng.Below(12);
    std::vector<std::vector<double>> cost(n, std::vector<double>(n, 0));
    std::vector<double> power(n);
    for (size_t a = 0; a < n; ++a) {
      power[a] = std::pow(10, rng.Uniform(0, 3));
      for (size_t b = 0; b < a; ++b) cost[a][b] = cost[b][a] = std::pow(10, rng.Uniform(0, 4));
    }
    std::vector<int> names(n);
    std::iota(names.begin(), names.end(), 0);
    const auto groups_of = [&](const std::vector<int>& real) {  // worker i is really real[i]
      std::vector<int> workers(n);
      std::iota(workers.begin(), workers.end(), 0);
      const auto at = [&](int i) { return static_cast<size_t>(real[static_cast<size_t>(i)]); };
      std::vector<Grouping> all = GroupsByLinks(workers, [&](int a, int b) { return cost[at(a)][at(b)]; });
      all.push_back(DividedByPower(all.front(), [&](int d) { return power[at(d)]; }));
      for (Grouping& groups : all) {
        for (std::vector<int>& group : groups) {
          for (int& d : group) d = real[static_cast<size_t>(d)];
          std::ranges::sort(group);
        }
        std::ranges::sort(groups);
      }
      return all;
    };
    std::vector<int> shuffled = names;
    for (size_t i = n; i > 1; --i) std::swap(shuffled[i - 1], shuffled[rng.Below(i)]);
    EXPECT_EQ(groups_of(names), groups_of(shuffled)) << "round " << round;
  }
}

TEST(GroupsTest, EqualPowerMixesUnlikeNodes) {
  const std::vector<double> seconds = {1, 1, 4, 4, 4, 4};
  const auto groups = EqualPower({0, 1, 2, 3, 4, 5}, 2, [&](int d) { return seconds[static_cast<size_t>(d)]; });
  ASSERT_EQ(groups.size(), 2u);
  for (const auto& group : groups) {
    double power = 0;
    for (const int d : group) power += 1 / seconds[static_cast<size_t>(d)];
    EXPECT_DOUBLE_EQ(power, 1.5);
  }
  EXPECT_EQ(EqualPower({3}, 5, [](int) { return 1.0; }).size(), 1u);
}

TEST(GroupsTest, RandomGroupsAreOfEqualSize) {
  base::Rng rng(1);
  const auto groups = RandomGroups({0, 1, 2, 3, 4, 5, 6}, 3, rng);
  ASSERT_EQ(groups.size(), 3u);
  for (const auto& group : groups) EXPECT_THAT(group.size(), testing::AllOf(testing::Ge(2u), testing::Le(3u)));
}

// Up to nine devices no ring has a shorter slowest message; beyond, none is worse than the given order.
TEST(RingOrderTest, AgainstAllOrders) {
  base::Rng rng(5);
  for (int round = 0; round < 60; ++round) {
    const size_t n = 3 + rng.Below(5);
    std::vector<std::vector<double>> cost(n, std::vector<double>(n, 0));
    for (auto& row : cost) {
      for (double& one : row) one = rng.Uniform(1, 100);
    }
    const auto message = [&](int a, int b) { return cost[static_cast<size_t>(a)][static_cast<size_t>(b)]; };
    std::vector<int> ring(n);
    std::iota(ring.begin(), ring.end(), 0);
    const std::vector<int> ours = RingOrder(ring, message);
    EXPECT_EQ(ours.front(), 0);
    double least = RingBottleneck(ring, message);
    while (std::next_permutation(ring.begin() + 1, ring.end())) least = std::min(least, RingBottleneck(ring, message));
    if (n > 3) {
      EXPECT_DOUBLE_EQ(RingBottleneck(ours, message), least) << "round " << round;
    }
  }
  for (int round = 0; round < 20; ++round) {
    const size_t n = 10 + rng.Below(60);
    const uint64_t seed = rng.Next();
    const auto message = [&](int a, int b) {
      return static_cast<double>(base::Mix64(seed ^ static_cast<uint64_t>(std::min(a, b) * 1000 + std::max(a, b))) %
                                 97);
    };
    std::vector<int> given(n);
    std::iota(given.begin(), given.end(), 0);
    std::vector<int> ours = RingOrder(given, message);
    EXPECT_LE(RingBottleneck(ours, message), RingBottleneck(given, message));
    std::ranges::sort(ours);
    EXPECT_EQ(ours, given);
  }
}

}  // namespace
}  // namespace medley::sched
