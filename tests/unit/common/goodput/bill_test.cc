// Tests the bill of a job against a count of single unit-seconds, over random histories.
#include "common/goodput/bill.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "common/base/rng.h"

namespace medley::goodput {
namespace {

using Use = Paid::Use;

// Exact but for the order of additions.
constexpr double kExact = 1e-6;

Account Claims(const std::string& id, const std::string& pool, Category category, double seconds) {
  Account account;
  account.id = id;
  account.pools[pool][category] = seconds;
  return account;
}

TEST(CategoryTest, NamesAreReadAsTheyAreWritten) {
  for (const Category category : kCategories) EXPECT_EQ(ParseCategory(ToString(category)), category);
  EXPECT_EQ(ParseCategory("other"), std::nullopt);
}

TEST(BillTest, WhatTheAccountDoesNotClaimIsStartUp) {
  Bill bill;
  Count({{"a", 10, 2}}, nullptr, bill);
  EXPECT_DOUBLE_EQ(bill.Seconds()[Category::kStartUp], 10);
  const Account account = Claims("1", "a", Category::kTraining, 14);
  Count({{"a", 10, 2}, {"a", 5, 0, Use::kWaiting}, {"a", 3, 1, Use::kIdle}}, &account, bill);
  EXPECT_DOUBLE_EQ(bill.Seconds()[Category::kStartUp], 6);
  EXPECT_DOUBLE_EQ(bill.Seconds()[Category::kTraining], 14);
  EXPECT_DOUBLE_EQ(bill.Seconds()[Category::kWaiting], 5);
  EXPECT_DOUBLE_EQ(bill.Seconds()[Category::kIdle], 3);
  EXPECT_DOUBLE_EQ(bill.Usd().Sum(), 5);
  Bill again = bill;
  Count({}, &account, again);  // nothing new
  EXPECT_EQ(again, bill);
}

TEST(BillTest, AnAccountIsBelievedAsFarAsWasPaid) {
  Bill bill;
  const Account account = Claims("1", "a", Category::kTraining, 30);
  Count({{"a", 10, 1}}, &account, bill);
  EXPECT_DOUBLE_EQ(bill.Seconds()[Category::kTraining], 10);
  EXPECT_DOUBLE_EQ(bill.Seconds().Sum(), 10);
  Count({{"a", 25, 1}}, &account, bill);  // the rest is counted now
  EXPECT_NEAR(bill.Seconds()[Category::kTraining], 30, kExact);
  EXPECT_NEAR(bill.Seconds()[Category::kStartUp], 5, kExact);
}

TEST(BillTest, SecondsKeepTheirPriceWhenTheyAreLost) {
  Bill bill;
  Account account = Claims("1", "a", Category::kTraining, 10);
  Count({{"a", 10, 5}}, &account, bill);
  account.pools["a"][Category::kTraining] = 6;
  account.pools["a"][Category::kLost] = 4;
  Count({{"a", 10, 1}}, &account, bill);
  EXPECT_DOUBLE_EQ(bill.Usd()[Category::kTraining], 3);
  EXPECT_DOUBLE_EQ(bill.Seconds()[Category::kLost], 4);
  EXPECT_DOUBLE_EQ(bill.Usd().Sum(), 6);
}

TEST(BillTest, AJobThatBeginsAnewHasLostItsTraining) {
  Bill bill;
  Account first = Claims("1", "a", Category::kTraining, 10);
  first.samples = 100;
  Count({{"a", 10, 5}}, &first, bill);
  Account second = Claims("2", "a", Category::kTraining, 3);
  second.first_samples = 20;  // of a checkpoint
  second.samples = 50;
  Count({{"a", 4, 1}}, &second, bill);
  EXPECT_DOUBLE_EQ(bill.Seconds()[Category::kLost], 8);
  EXPECT_DOUBLE_EQ(bill.Seconds()[Category::kTraining], 5);
  EXPECT_DOUBLE_EQ(bill.Seconds()[Category::kStartUp], 1);
  EXPECT_EQ(bill.samples, 50);
}

TEST(BillTest, ACoordinatorIsPartOfAUnit) {
  Bill bill;
  const Account account = Claims("1", kCoordinatorPool, Category::kTraining, 80);
  Count({{kCoordinatorPool, 10, 1, Use::kHeld, 0.1}}, &account, bill);
  EXPECT_DOUBLE_EQ(bill.Seconds()[Category::kTraining], 8);
  EXPECT_DOUBLE_EQ(bill.Seconds()[Category::kStartUp], 2);
  EXPECT_DOUBLE_EQ(bill.Share(), 0.8);
}

// A job whose units, generations, losses, coordinators and operators change at random. What each unit did in each
// second is written down; a loss and a coordinator's death write some seconds anew.
class History {
 public:
  explicit History(uint64_t seed) : random_(seed) {
    for (const char* pool : {"a", "b"}) prices_[pool] = 0.01 * static_cast<double>(1 + random_.Below(9));
  }

  void Run(int seconds) {
    for (; now_ < seconds && !testing::Test::HasFailure(); ++now_) {
      ChangeUnits();
      ChangeJob();
      Live();
      if (random_.Below(4) == 0) Operate(random_.Below(3));
      if (random_.Below(5) == 0) saved_ = {bill_, counted_until_};
      if (random_.Below(25) == 0) std::tie(bill_, counted_until_) = saved_;  // the operator dies
    }
    Operate(0);
    Check();
  }

 private:
  struct Unit {
    std::string pool;
    int node_at = 0;
    bool in_force = false;
    bool released = false;
    int began = 0;
    std::vector<Category> seconds;  // since `began`
    std::vector<Use> uses;
    std::vector<bool> claims;  // by the account
    std::vector<int> accounts;
  };

  void ChangeUnits() {
    if (units_.size() < 40 && random_.Below(6) == 0) {
      Unit& unit = units_.emplace_back();
      unit.pool = random_.Below(2) == 0 ? "a" : "b";
      unit.began = now_;
      unit.node_at = now_ + static_cast<int>(random_.Below(4));
    }
    for (Unit& unit : units_) {
      if (unit.released) continue;
      if (!unit.in_force && now_ > unit.node_at + 2 && random_.Below(4) == 0) unit.in_force = true;
      if (random_.Below(80) == 0) unit.released = true;
    }
  }

  void ChangeJob() {
    constexpr Category kDoes[] = {Category::kTraining, Category::kTraining,   Category::kTraining,
                                  Category::kDataWait, Category::kCheckpoint, Category::kMove,
                                  Category::kRecovery, Category::kEvaluation};
    if (random_.Below(5) == 0) does_ = kDoes[random_.Below(std::size(kDoes))];
    if (random_.Below(30) == 0) journal_ = now_;
    if (random_.Below(60) == 0)
      Rewrite(now_ - static_cast<int>(random_.Below(20)), Category::kTraining, Category::kLost);
    if (random_.Below(90) == 0) {  // the coordinator dies: what is not in its journal is recovery
      for (const Category c : kDoes) Rewrite(journal_, c, Category::kRecovery);
    }
    if (random_.Below(150) == 0) {  // the volume is lost: another account begins
      Operate(0);                   // its last observation was heard
      saved_ = {bill_, counted_until_};
      Rewrite(0, Category::kTraining, Category::kLost);
      ++account_;
      journal_ = now_;
    }
  }

  void Rewrite(int from, Category before, Category after) {
    for (Unit& unit : units_) {
      for (size_t i = 0; i < unit.seconds.size(); ++i) {
        const bool of_account = unit.claims[i] && unit.accounts[i] == account_;
        if (of_account && unit.began + static_cast<int>(i) >= from && unit.seconds[i] == before)
          unit.seconds[i] = after;
      }
    }
  }

  void Live() {
    for (Unit& unit : units_) {
      if (unit.released) continue;
      const bool waits = now_ < unit.node_at;
      const bool claims = !waits && unit.in_force;
      unit.seconds.push_back(waits ? Category::kWaiting : claims ? does_ : Category::kStartUp);
      unit.uses.push_back(waits ? Use::kWaiting : Use::kHeld);
      unit.claims.push_back(claims);
      unit.accounts.push_back(account_);
    }
  }

  // As the operator hears it some seconds later.
  Account AccountNow(int late = 0) const {
    Account account;
    account.id = std::to_string(account_);
    account.samples = 1000;
    for (const Unit& unit : units_) {
      for (size_t i = 0; i < unit.seconds.size(); ++i) {
        const bool heard = unit.began + static_cast<int>(i) + late < now_;
        if (unit.claims[i] && unit.accounts[i] == account_ && heard) account.pools[unit.pool][unit.seconds[i]] += 1;
      }
    }
    return account;
  }

  void Operate(uint64_t late) {
    std::vector<Paid> paid;
    for (const Unit& unit : units_) {
      for (size_t i = 0; i < unit.seconds.size(); ++i) {
        const int at = unit.began + static_cast<int>(i);
        if (at < counted_until_ || at >= now_) continue;
        paid.push_back({unit.pool, 1, prices_.at(unit.pool), unit.uses[i]});
      }
    }
    counted_until_ = now_;
    const Account account = AccountNow(static_cast<int>(late));
    Count(paid, random_.Below(5) == 0 && late > 0 ? nullptr : &account, bill_);
    double seconds = 0;
    for (const Unit& unit : units_) {
      seconds += static_cast<double>(std::min<int64_t>(static_cast<int64_t>(unit.seconds.size()), now_ - unit.began));
    }
    EXPECT_NEAR(bill_.Seconds().Sum(), seconds, kExact);
  }

  void Check() {
    std::map<std::string, Amounts> expected;
    for (const Unit& unit : units_) {
      for (const Category c : unit.seconds) expected[unit.pool][c] += 1;
    }
    for (const auto& [pool, amounts] : expected) {
      for (const Category c : kCategories) {
        EXPECT_NEAR(bill_.pools[pool].seconds[c], amounts[c], kExact) << pool << " " << ToString(c);
        EXPECT_NEAR(bill_.pools[pool].usd[c], amounts[c] * prices_[pool], kExact) << pool << " " << ToString(c);
      }
    }
  }

  base::Rng random_;
  std::map<std::string, double> prices_;
  std::vector<Unit> units_;
  Category does_ = Category::kTraining;
  int now_ = 0;
  int journal_ = 0;
  int account_ = 1;
  int counted_until_ = 0;
  Bill bill_;
  std::pair<Bill, int> saved_;
};

TEST(BillTest, CategoriesAreThoseOfSingleSecondsWhateverEnds) {
  for (uint64_t seed = 1; seed <= 200 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    History(seed).Run(300);
  }
}

}  // namespace
}  // namespace medley::goodput
