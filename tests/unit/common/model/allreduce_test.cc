
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <vector>

#include "common/model/allreduce_algorithm.h"

#include "common/base/rng.h"
#include "common/model/allreduce.h"
#include "common/model/link_speed.h"
#include "common/model/reduce_level.h"

namespace medley::model {
namespace {

using enum AllreduceAlgorithm;

TEST(AllreduceSecondsTest, CountsRoundsAndBytes) {
  const LinkSpeed link{1, 10};  // a second a message, and a second for ten bytes
  EXPECT_DOUBLE_EQ(AllreduceSeconds(kRing, 4, link, 40), 6 * (1 + 1));
  EXPECT_DOUBLE_EQ(AllreduceSeconds(kAuto, 4, link, 40), 6 * (1 + 1));
  EXPECT_DOUBLE_EQ(AllreduceSeconds(kRecursiveDoubling, 4, link, 40), 2 * (1 + 4));
  EXPECT_DOUBLE_EQ(AllreduceSeconds(kRecursiveDoubling, 5, link, 40), 4 * (1 + 4));  // a round before, one after
  EXPECT_DOUBLE_EQ(AllreduceSeconds(kCentralized, 4, link, 40), 2 * (1 + 12));
  EXPECT_DOUBLE_EQ(AllreduceSeconds(kLinear, 4, link, 40), 6 * (1 + 4));
  EXPECT_DOUBLE_EQ(AllreduceSeconds(kLinear, 4, {1, 0}, 40), 6);  // no limit of bytes
  for (const auto algorithm : {kAuto, kRing, kRecursiveDoubling, kCentralized, kLinear}) {
    EXPECT_EQ(AllreduceSeconds(algorithm, 1, link, 40), 0);
  }
}

// Over equal links both forms agree.
TEST(AllreduceSecondsTest, EqualLinksTakeTheSameTime) {
  const LinkSpeed link{1, 10};
  for (int members = 1; members <= 17; ++members) {
    for (const auto algorithm : kAllreduceAlgorithms) {
      const auto between = [&](int, int) { return link; };
      const double root = members - 1;
      EXPECT_NEAR(AllreduceSeconds(algorithm, members, between, 40, static_cast<int>(root)),
                  AllreduceSeconds(algorithm, members, link, 40), 1e-9)
          << static_cast<int>(algorithm) << " among " << members;
    }
  }
}

// Member 1 is far from all others: only what passes its links is slow.
TEST(AllreduceSecondsTest, OnlyTheLinksInUseCount) {
  const auto link = [](int a, int b) { return a == 1 || b == 1 ? LinkSpeed{10, 0} : LinkSpeed{1, 0}; };
  EXPECT_EQ(AllreduceSeconds(kRing, 4, link, 40), 6 * 10);
  EXPECT_EQ(AllreduceSeconds(kLinear, 4, link, 40), 2 * (10 + 10 + 1));
  EXPECT_EQ(AllreduceSeconds(kCentralized, 4, link, 40), 2 * 10);
  EXPECT_EQ(AllreduceSeconds(kRecursiveDoubling, 4, link, 40), 2 * 10);
  const auto one_way = [](int a, int b) { return a == 0 && b == 2 ? LinkSpeed{10, 0} : LinkSpeed{1, 0}; };
  EXPECT_EQ(AllreduceSeconds(kRing, 4, one_way, 40), 6);  // no neighbours
  EXPECT_EQ(AllreduceSeconds(kRecursiveDoubling, 4, one_way, 40), 1 + 10);
  EXPECT_EQ(AllreduceSeconds(kRing, 3, one_way, 40), 4);  // 2 -> 0, not 0 -> 2
  EXPECT_EQ(BroadcastSeconds(4, one_way, 40), 1 + 10);
  EXPECT_EQ(BroadcastSeconds(
                5,
                [](int, int) {
                  return LinkSpeed{1, 0};
                },
                40),
            3);
}

TEST(HierarchicalSecondsTest, GroupsWorkAtTheSameTime) {
  // Two groups of 2 and 3; their leaders 0 and 2. A message takes a second, between the groups ten.
  const auto link = [](int a, int b) { return LinkSpeed{(a < 2) == (b < 2) ? 1.0 : 10.0, 0}; };
  const std::vector<ReduceLevel> levels = {{{{0, 1}, {2, 3, 4}}, kRing}, {{{0, 2}}, kRing}};
  EXPECT_EQ(HierarchicalSeconds(levels, link, 40), 4 + 20 + 2);  // ring of 3; ring of 2; tree of 3
  const std::vector<ReduceLevel> flat = {{{{0, 1, 2, 3, 4}}, kRing}};
  EXPECT_EQ(HierarchicalSeconds(flat, link, 40), 8 * 10);
}

// Over equal links without latency, no member sends or gets more than its link carries in that time, and the busiest
// one as much as the algorithm says.
TEST(TrafficTest, AgreesWithTheTime) {
  const LinkSpeed link{0, 1};
  for (const AllreduceAlgorithm algorithm : kAllreduceAlgorithms) {
    for (int n = 1; n <= 9; ++n) {
      std::vector<int> members(static_cast<size_t>(n));
      std::iota(members.begin(), members.end(), 0);
      const std::vector<ReduceLevel> levels = {{{members}, algorithm}};
      std::vector<double> out(members.size()), in(members.size());
      for (const Traffic& traffic : TrafficOf(levels, 720, n - 1)) {
        ASSERT_NE(traffic.from, traffic.to);
        out.at(static_cast<size_t>(traffic.from)) += traffic.bytes;
        in.at(static_cast<size_t>(traffic.to)) += traffic.bytes;
      }
      SCOPED_TRACE(testing::Message() << static_cast<int>(algorithm) << " of " << n);
      const double seconds = AllreduceSeconds(algorithm, n, link, 720);
      EXPECT_EQ(std::accumulate(out.begin(), out.end(), 0.0), std::accumulate(in.begin(), in.end(), 0.0));
      EXPECT_LE(std::ranges::max(out), seconds + 1e-9);
      EXPECT_LE(std::ranges::max(in), seconds + 1e-9);
      if (algorithm == AllreduceAlgorithm::kRing) {
        EXPECT_NEAR(std::ranges::max(out), seconds, 1e-9);
      } else if (algorithm == AllreduceAlgorithm::kCentralized) {
        EXPECT_NEAR(out.back() + in.back(), seconds, 1e-9);
      }
    }
  }
}

TEST(ServedSecondsTest, PiecesAreASixteenthWithinBounds) {
  EXPECT_EQ(ServedPiece(4, 1000), size_t{1} << 14);
  EXPECT_EQ(ServedPiece(4, size_t{1} << 20), size_t{1} << 16);
  EXPECT_EQ(ServedPiece(4, size_t{1} << 30), size_t{209715});  // a member has 8 pieces of each of 20 on their way
  for (const size_t members : {2, 16, 48, 200, 256}) {         // what is not sent yet stays below 128 MiB
    EXPECT_LE(ServedPiece(members, size_t{1} << 30) * ServedAhead(members) * (members + 16), size_t{1} << 25);
    EXPECT_GE(ServedAhead(members), 1u);
  }
}

TEST(ServedSecondsTest, PiecesArriveAndLeaveAtTheSameTime) {
  const auto link = [](int from, int) { return LinkSpeed{from == 1 ? 0.5 : 0.25, from == 2 ? 5.0 : 10.0}; };
  // A single piece arrives from 0 and 2, and then goes back.
  EXPECT_DOUBLE_EQ(ServedSeconds(3, link, 100, 1), 0.25 + 0.5 + (10 + 20) + (10 + 10));
  const double mib = 1 << 20, arrives = 4 * mib * (0.1 + 0.2), leaves = 4 * mib * (0.1 + 0.1);
  EXPECT_DOUBLE_EQ(ServedSeconds(3, link, 4 * mib, 1), 0.75 + arrives + leaves / 16);
  EXPECT_DOUBLE_EQ(ServedSeconds(3, link, 2.5 * mib, 0), 0.75 + 2.5 * mib * (0.1 + 0.2 + (0.1 + 0.1) / 16));
  // Pieces of 64 KiB: four, and a quarter of one.
  EXPECT_DOUBLE_EQ(ServedSeconds(2, link, 65536 * 4.25, 0), 0.75 + 65536 / 10.0 * (4.25 + 1));
  EXPECT_DOUBLE_EQ(ServedSeconds(2, link, 0, 0), 0.75);
  EXPECT_LT(ServedSeconds(3, link, 1e300, 1), 1e301);
  EXPECT_DOUBLE_EQ(ServedSeconds(1, link, 100, 0), 0);
}

TEST(TrafficTest, LeadersTellTheirGroups) {
  const std::vector<ReduceLevel> levels = {{{{0, 1, 2}, {3}}, AllreduceAlgorithm::kCentralized},
                                           {{{0, 3}}, AllreduceAlgorithm::kLinear}};
  double into_2 = 0, all = 0;
  for (const Traffic& traffic : TrafficOf(levels, 10, 1)) {
    all += traffic.bytes;
    into_2 += traffic.to == 2 ? traffic.bytes : 0;
  }
  EXPECT_EQ(all, 4 * 10 + 2 * 10 + 2 * 10);  // to and from the root, 0 and 3, the broadcast
  EXPECT_EQ(into_2, 20);
}

TEST(AllreduceRulesTest, ChooseWhatIsFasterUpToTheBound) {
  for (int members = 2; members <= 64; ++members) {
    for (const LinkSpeed link : {kUnmeasuredLink, LinkSpeed{1e-6, 1e10}, LinkSpeed{0.01, 1e6}, LinkSpeed{0, 1e9}}) {
      const auto rules = AllreduceRules(members, link);
      for (int64_t bytes = 1024; bytes <= 1 << 28; bytes *= 2) {
        const auto size = static_cast<double>(bytes);
        const bool doubled =
            AllreduceSeconds(kRecursiveDoubling, members, link, size) <= AllreduceSeconds(kRing, members, link, size);
        EXPECT_EQ(ChooseAllreduce(rules, members, bytes) == kRecursiveDoubling, doubled && bytes <= 256 << 10)
            << members << " members, " << bytes << " bytes";
      }
    }
  }
  EXPECT_TRUE(AllreduceRules(1, kUnmeasuredLink).empty());
  EXPECT_TRUE(AllreduceRules(0, kUnmeasuredLink).empty());
}

constexpr AllreduceAlgorithm kAll[] = {kRing, kRecursiveDoubling, kCentralized, kLinear};
const std::vector<std::string> kPool = {"cpu"};

// The ring takes 1 s at every size; the other, so much.
std::vector<AllreduceMeasurement> Table(int ranks, AllreduceAlgorithm other, const std::vector<double>& seconds,
                                        const std::string& pool = "cpu") {
  std::vector<AllreduceMeasurement> table;
  int64_t bytes = 1024;
  for (const double time : seconds) {
    table.push_back({pool, ranks, bytes, kRing, 1});
    table.push_back({pool, ranks, bytes, other, time});
    bytes *= 4;
  }
  return table;
}

using Rules = std::vector<AlgorithmRule>;

TEST(MeasuredRulesTest, ReplaceTheRingWhereAnotherIsClearlyFasterAtBothEnds) {
  EXPECT_EQ(MeasuredRules(2, kPool, Table(2, kLinear, {0.5, 0.5, 0.5, 1, 1})), (Rules{{2, 16384, kLinear}}));
  EXPECT_EQ(MeasuredRules(2, kPool, Table(2, kLinear, {0.5, 0.9, 0.5, 0.5, 1})),
            (Rules{{2, 1024, kLinear}, {2, 16384, kRing}, {2, 65536, kLinear}}));
  EXPECT_EQ(MeasuredRules(2, kPool, Table(2, kLinear, {0.81, 0.9, 1, 1})), Rules{});
  // One disturbed ring.
  EXPECT_EQ(MeasuredRules(2, kPool, Table(2, kLinear, {1.1, 1.1, 0.1, 1.1})), Rules{});
}

TEST(MeasuredRulesTest, KeepAnAlgorithmUnlessAnotherIsClearlyFaster) {
  auto table = Table(2, kLinear, {0.5, 0.5, 0.5, 0.5});
  for (const auto& one : Table(2, kRecursiveDoubling, {0.6, 0.48, 0.46, 0.2})) table.push_back(one);
  EXPECT_EQ(MeasuredRules(2, kPool, table), (Rules{{2, 65536, kLinear}}));
  for (const auto& one : Table(2, kRecursiveDoubling, {0.6, 0.48, 0.2, 0.2})) table.push_back(one);  // the least counts
  EXPECT_EQ(MeasuredRules(2, kPool, table), (Rules{{2, 16384, kLinear}, {2, 65536, kRecursiveDoubling}}));
}

TEST(MeasuredRulesTest, SpareTheRootsLink) {
  EXPECT_EQ(MeasuredRules(2, kPool, Table(2, kCentralized, std::vector<double>(8, 0.1))),
            (Rules{{2, 256 << 10, kCentralized}}));
  EXPECT_EQ(MeasuredRules(5, kPool, Table(5, kCentralized, std::vector<double>(8, 0.1))),
            (Rules{{5, 64 << 10, kCentralized}}));
}

TEST(MeasuredRulesTest, OtherNumbersOfReplicasTakeTheNearestScaledByRounds) {
  // With kUnmeasuredLink and few bytes, rounds decide: the ring has 2 (n - 1), recursive doubling log2 n.
  auto table = Table(2, kRecursiveDoubling, {2, 2});
  EXPECT_EQ(MeasuredRules(2, kPool, table), Rules{});
  EXPECT_EQ(MeasuredRules(16, kPool, table), (Rules{{16, 4096, kRecursiveDoubling}}));  // 2 * (4 / 1) / (30 / 2)
  for (const auto& one : Table(8, kRecursiveDoubling, {3, 3})) table.push_back(one);    // 3 * (4 / 3) / (30 / 14) > 1
  EXPECT_EQ(MeasuredRules(16, kPool, table), Rules{});
  EXPECT_EQ(MeasuredRules(4, kPool, table), Rules{});  // as near to 2 as to 8: 2 * (2 / 1) / (6 / 2) > 1
}

TEST(MeasuredRulesTest, MustSuitAllPools) {
  auto table = Table(2, kLinear, {0.1, 0.1, 0.1});
  const std::vector<std::string> both = {"cpu", "gpu"};
  EXPECT_EQ(MeasuredRules(2, both, table), AllreduceRules(2, kUnmeasuredLink));  // one was not measured
  EXPECT_EQ(MeasuredRules(2, {}, table), AllreduceRules(2, kUnmeasuredLink));
  EXPECT_EQ(MeasuredRules(2, kPool, {}), AllreduceRules(2, kUnmeasuredLink));
  for (const auto& one : Table(2, kLinear, {0.5, 0.5, 0.9, 0.1}, "gpu")) table.push_back(one);
  EXPECT_EQ(MeasuredRules(2, both, table), (Rules{{2, 4096, kLinear}}));
  EXPECT_TRUE(MeasuredRules(1, kPool, table).empty());
}

// Whatever was measured: what is chosen is never slower than the ring by the measurements, and no faster one was left
// out for the ring.
TEST(MeasuredRulesTest, RandomTables) {
  base::Rng rng(20);
  for (int round = 0; round < 2000; ++round) {
    const int ranks = 2 + static_cast<int>(rng.Below(7));
    std::map<int64_t, std::map<AllreduceAlgorithm, double>> times;
    std::vector<AllreduceMeasurement> table;
    for (int64_t bytes = 4096; bytes <= 16 << 20; bytes *= 4) {
      for (const auto algorithm : kAll) {
        if (rng.Below(12) == 0) continue;
        table.push_back({"cpu", ranks, bytes, algorithm, rng.Uniform(0.1, 1.5)});
        times[bytes][algorithm] = table.back().seconds;
      }
    }
    const auto rules = MeasuredRules(ranks, kPool, table);
    for (size_t i = 1; i < rules.size(); ++i) {
      EXPECT_LT(rules[i - 1].max_bytes, rules[i].max_bytes);
      EXPECT_NE(rules[i - 1].algorithm, rules[i].algorithm);
    }
    const auto faster = [&](AllreduceAlgorithm algorithm, int64_t bytes) {
      const auto& row = times.at(bytes);
      return row.contains(algorithm) && row.contains(kRing) && row.at(algorithm) <= kClearlyFaster * row.at(kRing) &&
             (algorithm != kCentralized || bytes <= (256 << 10) / (ranks - 1));
    };
    std::optional<int64_t> below;
    for (const auto& [bytes, row] : times) {
      if (!row.contains(kRing)) continue;
      const auto usable = [&, b = bytes](AllreduceAlgorithm one) {
        return faster(one, b) && (!below || faster(one, *below));
      };
      for (const int64_t size : {below.value_or(0) + 1, bytes}) {
        const auto chosen = ChooseAllreduce(rules, ranks, size);
        EXPECT_EQ(chosen == kRing, std::none_of(kAll, kAll + 4, usable)) << round << ": " << size;
        EXPECT_TRUE(chosen == kRing || usable(chosen)) << round << ": " << size;
      }
      below = bytes;
    }
    EXPECT_EQ(ChooseAllreduce(rules, ranks, (16 << 20) + 1), kRing);
  }
}

TEST(ChooseAllreduceTest, TakesTheSmallestSufficientSize) {
  const std::vector<AlgorithmRule> rules = {{2, 100, kLinear}, {2, 10, kCentralized}, {3, 10, kAuto}};
  EXPECT_EQ(ChooseAllreduce(rules, 2, 10), kCentralized);
  EXPECT_EQ(ChooseAllreduce(rules, 2, 11), kLinear);
  EXPECT_EQ(ChooseAllreduce(rules, 2, 101), kRing);
  EXPECT_EQ(ChooseAllreduce(rules, 3, 1), kRing);
  EXPECT_EQ(ChooseAllreduce({}, 2, 1), kRing);
}

}  // namespace
}  // namespace medley::model
