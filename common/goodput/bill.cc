#include "common/goodput/bill.h"

#include <algorithm>

namespace medley::goodput {
namespace {

// What was paid for one pool since the last call.
struct PoolPaid {
  double waiting = 0;
  double held = 0;
  double idle = 0;
  double usd = 0;
  double part = 1;
};

// Moves seconds and money between categories, and adds what was paid: `change` is by how much each category grows, and
// sums to the seconds that cost `usd`. Who gives seconds away gives their mean price with them; the others share all of
// the money by their seconds.
void Move(const Amounts& change, double usd, PoolBill& pool) {
  double grows = 0;
  for (const Category c : kCategories) {
    if (change[c] > 0) grows += change[c];
    if (change[c] >= 0) continue;
    const double part = pool.seconds[c] > 0 ? std::min(1.0, -change[c] / pool.seconds[c]) : 0;
    const double gives = part * pool.usd[c];
    usd += gives;
    pool.usd[c] -= gives;
  }
  for (const Category c : kCategories) {
    pool.seconds[c] = std::max(0.0, pool.seconds[c] + change[c]);
    if (change[c] > 0) pool.usd[c] += usd * (change[c] / grows);
  }
  if (grows <= 0) pool.usd[Category::kStartUp] += usd;
}

void CountPool(const PoolPaid& paid, const Amounts& claimed, PoolBill& pool) {
  Amounts change;
  double more = 0;  // that the account claims beyond what it gives back
  for (const Category c : kCategories) {
    if (c == Category::kWaiting || c == Category::kStartUp) continue;
    change[c] = (claimed[c] - pool.counted[c]) * paid.part;
    more += change[c];
  }
  const double free = std::max(0.0, pool.seconds[Category::kStartUp] + paid.held);
  // The rest of the claim is counted when more was paid: the account may be some moments ahead.
  const double believed = more > free ? free / more : 1;
  double counted = 0;
  for (const Category c : kCategories) {
    if (c == Category::kWaiting || c == Category::kStartUp) continue;
    pool.counted[c] += believed * (claimed[c] - pool.counted[c]);
    change[c] *= believed;
    counted += change[c];
  }
  change[Category::kWaiting] += paid.waiting;
  change[Category::kIdle] += paid.idle;
  change[Category::kStartUp] += paid.held - counted;
  Move(change, paid.usd, pool);
}

// The account has begun anew: what was counted stays, but for the training that is repeated.
void BeginAccount(const Account& account, Bill& bill) {
  const double before = static_cast<double>(bill.samples);
  const double kept = before > 0 ? std::clamp(static_cast<double>(account.first_samples) / before, 0.0, 1.0) : 1;
  for (auto& [name, pool] : bill.pools) {
    Amounts change;
    const double seconds = (1 - kept) * std::min(pool.counted[Category::kTraining], pool.seconds[Category::kTraining]);
    change[Category::kTraining] = -seconds;
    change[Category::kLost] = seconds;
    if (seconds > 0) Move(change, 0, pool);
    pool.counted = {};
  }
  bill.account = account.id;
}

}  // namespace

Amounts Bill::Seconds() const {
  Amounts sum;
  for (const auto& [name, pool] : pools) sum += pool.seconds;
  return sum;
}

Amounts Bill::Usd() const {
  Amounts sum;
  for (const auto& [name, pool] : pools) sum += pool.usd;
  return sum;
}

double Bill::Share() const {
  const Amounts usd = Usd();
  const Amounts amounts = usd.Sum() > 0 ? usd : Seconds();
  const double sum = amounts.Sum();
  return sum > 0 ? std::clamp(amounts[Category::kTraining] / sum, 0.0, 1.0) : 0;
}

void Count(const std::vector<Paid>& paid, const Account* account, Bill& bill) {
  std::map<std::string, PoolPaid> by_pool;
  for (const Paid& one : paid) {
    PoolPaid& pool = by_pool[one.pool];
    pool.usd += one.usd;
    pool.part = one.part;
    if (one.use == Paid::Use::kWaiting) pool.waiting += one.seconds;
    if (one.use == Paid::Use::kHeld) pool.held += one.seconds;
    if (one.use == Paid::Use::kIdle) pool.idle += one.seconds;
  }
  const bool known = account != nullptr && !account->id.empty();
  if (known && account->id != bill.account) BeginAccount(*account, bill);
  if (known) bill.samples = account->samples;
  for (const auto& [name, pool] : by_pool) bill.pools.try_emplace(name);
  for (auto& [name, pool] : bill.pools) {
    const auto pays = by_pool.find(name);
    Amounts claimed = pool.counted;
    // Which part of a unit the coordinator's pod is, only its payment says.
    if (known && (pays != by_pool.end() || name != kCoordinatorPool)) {
      if (const auto claims = account->pools.find(name); claims != account->pools.end()) claimed = claims->second;
    }
    CountPool(pays == by_pool.end() ? PoolPaid() : pays->second, claimed, pool);
  }
}

}  // namespace medley::goodput
