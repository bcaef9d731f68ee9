// Whether an answer of a source is believed, and what is known of the source after it.
//
// Every source of prices has at some time answered 200 with missing, zero, duplicated or default prices. So: nothing is
// accepted that is not a positive finite price in USD; a complete answer that lost a fifth of the last good one's
// prices is refused whole; a price that moved by more than a factor of three waits for the next answer to confirm it;
// answers are merged by key and never replace what they do not mention, until a week has passed. Each case is counted.
//
// Pure: AcceptedPrices is a value that belongs to the caller.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "scheduler-service/catalog/feed.h"

namespace medley::sched {

struct AcceptanceOptions {
  double max_step = 3;             // factor, up or down, that one answer may move a price by
  double min_share_of_last = 0.8;  // of the number of prices in the last good complete answer
  double max_spot_of_on_demand = 1.05;
  base::nanoseconds forget_after = std::chrono::hours(168);  // keys that were not seen for this long
  bool authoritative = false;                                // see FeedTraits
};

// What is known of one source.
struct AcceptedPrices {
  std::map<std::string, CatalogEntry> known;    // by KeyOf; observed_at and source are set
  std::map<std::string, CatalogEntry> doubted;  // seen once, moved too far; by key
  std::set<std::string> answered;               // keys of the last answer that was taken, for Unchanged
  size_t complete_size = 0;                     // prices in the last good complete answer
  base::WallTime complete_at;                   // when that was
};

// Reasons: shrunk (the whole answer); price, currency, key, step, out_of_order (one entry, what was known stays);
// clamped, duplicate (one entry, taken all the same).
struct AcceptanceReport {
  bool taken = true;  // false: the answer was refused whole
  std::map<std::string, int> reasons;
  std::vector<std::string> notes;  // a sentence each, for the log; the first few
};

// USD per instance and hour of the same machine on demand in the same region, from any source.
using OnDemandPrice = std::function<std::optional<double>(const model::Offering&)>;

// Takes an answer that came at `now` from the source called `source`.
AcceptanceReport Accept(const AcceptanceOptions& options, const std::string& source, const Snapshot& snapshot,
                        const OnDemandPrice& on_demand, base::WallTime now, AcceptedPrices& prices);

// The source said Unchanged: every price of its last answer is confirmed, also the doubted ones.
void Confirm(base::WallTime now, AcceptedPrices& prices);

// Takes away what was not seen for options.forget_after. Returns how many.
int Forget(const AcceptanceOptions& options, base::WallTime now, AcceptedPrices& prices);

}  // namespace medley::sched
