#include "common/model/pool_links.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace medley::model {
namespace {

const std::vector<std::string> kPools = {"a", "b", "c"};

Link Between(const std::string& from, const std::string& to, double latency, double speed) {
  return {.from = from, .to = to, .latency_seconds = latency, .bytes_per_second = speed};
}

// "latency/speed" for each pair, "-" where it is unknown.
std::vector<std::string> Table(const std::vector<Link>& links) {
  std::vector<std::string> out;
  for (const auto& speed : PoolLinks(kPools, links)) {
    out.push_back(speed ? std::to_string(static_cast<int>(speed->latency_seconds)) + "/" +
                              std::to_string(static_cast<int>(speed->bytes_per_second))
                        : "-");
  }
  return out;
}

using Rows = std::vector<std::string>;

TEST(PoolLinksTest, AreUnknownWithoutAny) { EXPECT_EQ(Table({}), Rows(9, "-")); }

TEST(PoolLinksTest, HoldInBothDirectionsUnlessTheOtherHasItsOwn) {
  EXPECT_EQ(Table({Between("a", "b", 1, 10)}), (Rows{"-", "1/10", "-", "1/10", "-", "-", "-", "-", "-"}));
  const Rows asymmetric = {"-", "1/10", "-", "2/20", "-", "-", "-", "-", "-"};
  EXPECT_EQ(Table({Between("a", "b", 1, 10), Between("b", "a", 2, 20)}), asymmetric);
  EXPECT_EQ(Table({Between("b", "a", 2, 20), Between("a", "b", 1, 10)}), asymmetric);
}

TEST(PoolLinksTest, CountTheSlowestOfSeveralMeasurements) {
  EXPECT_EQ(Table({Between("a", "b", 1, 10), Between("a", "b", 3, 30)}),
            (Rows{"-", "3/10", "-", "3/10", "-", "-", "-", "-", "-"}));
}

TEST(PoolLinksTest, AreTheSlowerOfBothPoolsWhereNoneWasMeasuredBetweenThem) {
  EXPECT_EQ(Table({Between("a", "a", 1, 10), Between("b", "b", 2, 20), Between("b", "c", 5, 5)}),
            (Rows{"1/10", "2/10", "-", "2/10", "2/20", "5/5", "-", "5/5", "-"}));
}

TEST(PoolLinksTest, IgnoreUnknownSpeedsAndOtherPools) {
  EXPECT_EQ(Table({Between("a", "b", 1, 0), Between("a", "elsewhere", 1, 10), Between("", "", 1, 10)}), Rows(9, "-"));
}

TEST(PoolLinksTest, DoNotDependOnTheOrderOfTheList) {
  std::vector<Link> links = {Between("a", "b", 1, 10), Between("b", "a", 2, 20), Between("a", "b", 4, 40),
                             Between("c", "c", 3, 7), Between("a", "a", 1, 9)};
  const Rows expected = Table(links);
  std::ranges::sort(links, {}, &Link::latency_seconds);
  do {
    EXPECT_EQ(Table(links), expected);
  } while (std::ranges::next_permutation(links, {}, &Link::latency_seconds).found);
}

}  // namespace
}  // namespace medley::model
