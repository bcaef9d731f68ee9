// The bill of a job: what its paid unit-seconds were for. Values and pure functions; thread-safe.
//
//   paid since the last call, by pod ---+
//                                       +--> Count --> Bill: seconds and USD by pool and category
//   the coordinator's account ----------+
//
// What the account does not claim of the paid seconds is start-up, so the categories sum to what was paid, whatever the
// account says. An account that claims more than was paid is believed only as far as that.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/goodput/category.h"

namespace medley::goodput {

// What one pod cost during a time in which its use did not change.
struct Paid {
  // kHeld: on a node; what the account does not claim is start-up.
  enum class Use { kWaiting, kHeld, kIdle };
  std::string pool;
  double seconds = 0;  // of a unit: those of the pod times `part`
  double usd = 0;
  Use use = Use::kHeld;
  double part = 1;  // of a unit that the pod is; coordinators are less than one
};

struct PoolBill {
  Amounts seconds;
  Amounts usd;
  Amounts counted;  // of the account, seconds that `seconds` contains
  bool operator==(const PoolBill&) const = default;
};

struct Bill {
  std::string account;  // the id of the account that was counted; empty: none yet
  int64_t samples = 0;  // committed, as that account said last
  std::map<std::string, PoolBill> pools;

  Amounts Seconds() const;
  Amounts Usd() const;
  // Training's share of the USD; of the seconds while nothing has cost anything; 0 while nothing was paid.
  double Share() const;
  bool operator==(const Bill&) const = default;
};

// Adds `paid`, and what `account` claims beyond what was counted of it. `account` null: it is not known now.
//
// An account with another id begins where the one before has ended, or earlier: what was trained beyond its first
// sample is lost. Seconds that change their category keep their mean price.
void Count(const std::vector<Paid>& paid, const Account* account, Bill& bill);

}  // namespace medley::goodput
