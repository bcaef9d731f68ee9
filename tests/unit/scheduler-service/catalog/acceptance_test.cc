#include "scheduler-service/catalog/acceptance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "common/base/testing/fake_clock.h"
#include "scheduler-service/catalog/testing/scripted_feed.h"

namespace medley::sched {
namespace {

using testing::Pair;
using testing::UnorderedElementsAre;

class AcceptanceTest : public testing::Test {
 protected:
  static CatalogEntry Spot(const std::string& type, double price, int effective = 0) {
    return Offer("aws", "r", "", type, "spot", price, base::WallTime(base::seconds(effective)));
  }
  AcceptanceReport Take(std::vector<CatalogEntry> entries, bool complete = true) {
    return Accept(options_, "feed", {std::move(entries), complete, {}}, nullptr, clock_.Now(), prices_);
  }
  double Known(const std::string& type, const std::string& capacity = "spot") const {
    const auto found = prices_.known.find("aws/r//" + type + "/" + capacity);
    return found == prices_.known.end() ? 0 : found->second.price_per_instance_hour;
  }

  AcceptanceOptions options_;
  base::FakeClock clock_;
  AcceptedPrices prices_;
};

TEST_F(AcceptanceTest, ZeroNegativeInfiniteAndForeignPricesAreRejected) {
  CatalogEntry yuan = Spot("cn", 5);
  yuan.currency = "CNY";
  const AcceptanceReport report = Take({Spot("ok", 1), Spot("zero", 0), Spot("minus", -1), Spot("inf", HUGE_VAL),
                                        Spot("nan", NAN), Spot("huge", 1e308), yuan, Spot("", 1)});
  EXPECT_TRUE(report.taken);
  EXPECT_THAT(report.reasons, UnorderedElementsAre(Pair("price", 5), Pair("currency", 1), Pair("key", 1)));
  EXPECT_EQ(prices_.known.size(), 1u);
  Take({Spot("ok", 0)});
  EXPECT_EQ(Known("ok"), 1);
  EXPECT_THAT(Take({Spot("ok", 5e-324), Spot("small", 9e-10), Spot("least", 1e-9)}).reasons,
              UnorderedElementsAre(Pair("price", 2)));
  EXPECT_EQ(Known("ok"), 1);
}

TEST_F(AcceptanceTest, AShrunkAnswerIsRejectedAsAWhole) {
  std::vector<CatalogEntry> ten;
  for (int i = 0; i < 10; ++i) ten.push_back(Spot("t" + std::to_string(i), 1));
  ASSERT_TRUE(Take(ten).taken);
  std::vector<CatalogEntry> seven(ten.begin(), ten.begin() + 7);
  seven[0].price_per_instance_hour = 1.5;
  const AcceptanceReport refused = Take(seven);
  EXPECT_FALSE(refused.taken);
  EXPECT_THAT(refused.reasons, UnorderedElementsAre(Pair("shrunk", 1)));
  EXPECT_EQ(Known("t0"), 1);
  EXPECT_TRUE(Take(seven, /*complete=*/false).taken);  // an incomplete answer
  EXPECT_EQ(Known("t0"), 1.5);
  EXPECT_EQ(prices_.known.size(), 10u);
  EXPECT_TRUE(Take({ten.begin(), ten.begin() + 8}).taken);  // 80 % of the last answer
  EXPECT_EQ(prices_.known.size(), 10u);                     // merged, not replaced
  clock_.Advance(std::chrono::hours(169));                  // after forgetAfter a smaller answer is accepted
  EXPECT_TRUE(Take({ten.begin(), ten.begin() + 3}).taken);
  EXPECT_EQ(prices_.known.size(), 3u);
}

TEST_F(AcceptanceTest, AStepAboveMaxStepWaitsForConfirmation) {
  Take({Spot("a", 1), Spot("b", 1)});
  EXPECT_THAT(Take({Spot("a", 3.1), Spot("b", 0.33)}).reasons, UnorderedElementsAre(Pair("step", 2)));
  EXPECT_EQ(Known("a"), 1);
  EXPECT_THAT(Take({Spot("a", 3.2), Spot("b", 1.1)}).reasons, testing::IsEmpty());
  EXPECT_EQ(Known("a"), 3.2);
  EXPECT_EQ(Known("b"), 1.1);
  Take({Spot("a", 3.2), Spot("b", 0.3)});  // starts over: the answer in between had the old price
  EXPECT_EQ(Known("b"), 1.1);
  Confirm(clock_.Now(), prices_);  // Unchanged counts as a second answer
  EXPECT_EQ(Known("b"), 0.3);
  EXPECT_TRUE(prices_.unconfirmed.empty());
  Take({Spot("a", 1.2), Spot("b", 0.3)});  // 3.2 / 1.2 < 3: accepted at once
  EXPECT_EQ(Known("a"), 1.2);
}

TEST_F(AcceptanceTest, SpotAboveOnDemandIsClamped) {
  const auto on_demand = Offer("aws", "r", "", "a", "on-demand", 2);
  EXPECT_THAT(Take({Spot("a", 2.5), on_demand}).reasons, UnorderedElementsAre(Pair("clamped", 1)));
  EXPECT_DOUBLE_EQ(Known("a"), 2.1);
  Take({Spot("a", 2.05), on_demand});
  EXPECT_EQ(Known("a"), 2.05);
  // Another source's on-demand price.
  AcceptedPrices other;
  Accept(
      options_, "f", {{Spot("z", 9)}, true, {}}, [](const model::Offering&) { return 4.0; }, clock_.Now(), other);
  EXPECT_DOUBLE_EQ(other.known.begin()->second.price_per_instance_hour, 4.2);
}

TEST_F(AcceptanceTest, DuplicatesTakeTheLatestThenTheMostExpensive) {
  const AcceptanceReport report = Take(
      {Spot("a", 1, 10), Spot("a", 2, 30), Spot("a", 1.5, 20), Spot("b", 1, 5), Spot("b", 1.1, 5), Spot("b", 0.9, 5)});
  EXPECT_THAT(report.reasons, UnorderedElementsAre(Pair("duplicate", 2)));
  EXPECT_EQ(Known("a"), 2);
  EXPECT_EQ(Known("b"), 1.1);
  EXPECT_THAT(Take({Spot("a", 1.9, 29), Spot("b", 1.1, 5)}).reasons, UnorderedElementsAre(Pair("out_of_order", 1)));
  EXPECT_EQ(Known("a"), 2);
}

TEST_F(AcceptanceTest, AvailabilityWithoutAPriceKeepsThePrice) {
  Take({Spot("a", 1)});
  CatalogEntry unavailable = Spot("a", 0);
  unavailable.available = false;
  unavailable.unavailable_until = clock_.Now() + base::seconds(180);
  EXPECT_TRUE(Take({unavailable}, false).reasons.empty());
  EXPECT_EQ(Known("a"), 1);
  EXPECT_FALSE(prices_.known.begin()->second.available);
  Take({Spot("a", 1)});
  EXPECT_TRUE(prices_.known.begin()->second.available);
  for (const auto& both : {std::vector{Spot("a", 1.1), unavailable}, std::vector{unavailable, Spot("a", 1.2)}}) {
    EXPECT_TRUE(Take(both).reasons.empty());  // one entry has the price, the other says it is unavailable
    EXPECT_GT(Known("a"), 1);
    EXPECT_FALSE(prices_.known.begin()->second.available);
  }
}

TEST_F(AcceptanceTest, AuthoritativeAnswersReplaceAllPrices) {
  options_.authoritative = true;
  Take({Spot("a", 1), Spot("b", 1), Spot("c", 1), Offer("aws", "r", "", "a", "on-demand", 1)});
  EXPECT_TRUE(Take({Spot("a", 100)}).reasons.empty());
  EXPECT_EQ(Known("a"), 100);
  EXPECT_EQ(prices_.known.size(), 1u);
}

}  // namespace
}  // namespace medley::sched
