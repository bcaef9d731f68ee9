// Decides which prices of a source's answer to accept, and keeps the accepted prices of the source.
//
// Every price source has at some time returned HTTP 200 with missing, zero, duplicated or default prices. Therefore:
// - Only positive finite prices in USD are accepted.
// - A complete answer that has lost more than a fifth of the last good answer's prices is rejected as a whole.
// - A price that moved by more than a factor of three is accepted once the next answer confirms it.
// - Answers are merged by key. Prices that an answer does not mention are kept for a week.
// Each rejection is counted by reason. The numbers are AcceptanceOptions.
//
// Pure: AcceptedPrices is a value that the caller owns.
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
  double max_step = 3;                  // largest factor, up or down, by which one answer may move a price
  double min_share_of_last = 0.8;       // smallest share of the number of prices in the last good complete answer
  double max_spot_of_on_demand = 1.05;  // spot prices above this multiple of the on-demand price are reduced to it
  base::nanoseconds forget_after = std::chrono::hours(168);  // keys that were not confirmed for this long are dropped
  bool authoritative = false;                                // see FeedTraits
};

// The accepted prices of one source.
struct AcceptedPrices {
  std::map<std::string, CatalogEntry> known;        // by KeyOf; observed_at and source are set
  std::map<std::string, CatalogEntry> unconfirmed;  // by key; prices that moved too far and need confirmation
  std::set<std::string> answered;                   // keys of the last accepted answer; Confirm needs them
  size_t complete_size = 0;                         // number of prices in the last good complete answer
  base::WallTime complete_at;                       // time of that answer
  std::string configuration;                        // of the source when these prices were saved
};

// Reasons: shrunk (the whole answer is rejected); price, currency, key, step, out_of_order (one entry is rejected, the
// known price stays); clamped, duplicate (one entry is accepted after a correction).
struct AcceptanceReport {
  bool taken = true;  // false: the whole answer was rejected
  std::map<std::string, int> reasons;
  std::vector<std::string> notes;  // messages for the log, at most 8
};

// Returns the on-demand price (USD per instance and hour) of the same machine in the same region, from any source.
using OnDemandPrice = std::function<std::optional<double>(const model::Offering&)>;

// Merges `snapshot`, which the source named `source` returned at `now`, into `prices`.
AcceptanceReport Accept(const AcceptanceOptions& options, const std::string& source, const Snapshot& snapshot,
                        const OnDemandPrice& on_demand, base::WallTime now, AcceptedPrices& prices);

// The source returned Unchanged: confirms every price of its last answer, including the unconfirmed ones.
void Confirm(base::WallTime now, AcceptedPrices& prices);

// Drops prices that were not confirmed for options.forget_after. Returns their number.
int Forget(const AcceptanceOptions& options, base::WallTime now, AcceptedPrices& prices);

}  // namespace medley::sched
