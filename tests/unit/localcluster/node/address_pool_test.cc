#include "localcluster/node/address_pool.h"

#include <gtest/gtest.h>

#include <set>

#include "common/base/testing/status_matchers.h"

namespace medley::localcluster {
namespace {

using base::IsOk;
using base::StatusIs;

TEST(AddressPoolTest, EachKeyHasItsOwnAndKeepsIt) {
  auto pool = AddressPool::Parse("127.64.0.0/10", "node");
  ASSERT_THAT(pool, IsOk());
  std::set<std::string> seen;
  for (int i = 0; i < 500; ++i) {
    const std::string key = "ns/pod-" + std::to_string(i);
    const auto address = pool->Take(key);
    ASSERT_THAT(address, IsOk());
    EXPECT_TRUE(seen.insert(*address).second) << *address;
    EXPECT_EQ(*pool->Take(key), *address);
  }
}

TEST(AddressPoolTest, TheSameNameGetsTheSameAddressAgain) {
  auto pool = AddressPool::Parse("127.64.0.0/10", "node");
  ASSERT_THAT(pool, IsOk());
  const std::string first = *pool->Take("ns/coordinator");
  pool->Release("ns/coordinator");
  EXPECT_EQ(*pool->Take("ns/coordinator"), first);
}

TEST(AddressPoolTest, TheSameNameGetsAnotherAddressOnAnotherNode) {
  auto a = AddressPool::Parse("127.64.0.0/10", "a"), b = AddressPool::Parse("127.64.0.0/10", "b");
  EXPECT_NE(*a->Take("ns/coordinator"), *b->Take("ns/coordinator"));
}

TEST(AddressPoolTest, SmallRangeRunsOutWithoutTheNetworksOwn) {
  auto pool = AddressPool::Parse("127.9.9.0/29", "node");
  ASSERT_THAT(pool, IsOk());
  std::set<std::string> seen;
  for (int i = 0; i < 6; ++i) seen.insert(*pool->Take(std::to_string(i)));
  EXPECT_EQ(*seen.begin(), "127.9.9.1");
  EXPECT_EQ(*seen.rbegin(), "127.9.9.6");
  EXPECT_THAT(pool->Take("more"), StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST(AddressPoolTest, ClaimTakesWhatIsFreeAndInside) {
  auto pool = AddressPool::Parse("127.9.9.0/29", "node");
  ASSERT_THAT(pool, IsOk());
  pool->Claim("a", "127.9.9.3");
  EXPECT_EQ(*pool->Take("a"), "127.9.9.3");
  pool->Claim("b", "127.9.9.3");
  EXPECT_NE(*pool->Take("b"), "127.9.9.3");
  pool->Claim("c", "10.0.0.1");
  EXPECT_EQ(pool->Take("c")->substr(0, 8), "127.9.9.");
}

TEST(AddressPoolTest, RefusesOtherRanges) {
  for (const char* bad :
       {"10.0.0.0/8", "127.0.0.0", "127.0.0.0/30", "127.0.0.0/7", "127.0.0.0/x", "", "127.0.0.0/29"}) {
    EXPECT_THAT(AddressPool::Parse(bad, "node"), StatusIs(absl::StatusCode::kInvalidArgument)) << bad;
  }
}

}  // namespace
}  // namespace medley::localcluster
