// The interface of a price source. A feed fetches and parses prices, and nothing else.
//
// The poller (poller.h) decides everything else: when to fetch (period, jitter, backoff, Retry-After), which prices to
// accept (acceptance.h), when they become stale (staleness.h), which source wins (merge.h), and when to publish a
// change (hysteresis.h). A feed therefore reports the source's prices unchanged: it does not clamp, smooth, merge or
// cache them. It may keep what makes the next fetch cheaper (ETag, Last-Modified, the hash of a file).
#pragma once

#include <absl/status/status.h>

#include <optional>
#include <stop_token>
#include <string>
#include <variant>
#include <vector>

#include "common/base/clock.h"
#include "scheduler-service/catalog/entry.h"

namespace medley::sched {

// The result of a successful fetch. An entry that cannot be parsed makes the whole fetch an error. Offerings without a
// price ("N/A", an empty spot column, a machine that is not sold as spot) are left out.
struct Snapshot {
  // A key may appear several times: the latest effective_at wins; among equals the most expensive, with a warning.
  std::vector<CatalogEntry> entries;
  // True: the snapshot has all prices that the feed selects, so one that is much smaller than the last is rejected.
  // False: a region or page is missing; keys that are not in the snapshot keep their prices.
  bool complete = true;
  std::vector<absl::Status> warnings;  // for the log: what is missing, and why
};

// The source reports no change since the last successful fetch (HTTP 304, same file content). Confirms every price of
// that fetch.
struct Unchanged {};

// The outcome of a fetch. The code of an error is the label `result` of medley_price_fetch_total:
//   INVALID_ARGUMENT                    the body is malformed (also counted as rejected, reason "malformed")
//   RESOURCE_EXHAUSTED                  rate limited (429), or more bytes or pages than allowed
//   UNAUTHENTICATED, PERMISSION_DENIED  invalid credentials
//   NOT_FOUND, UNAVAILABLE, DEADLINE_EXCEEDED  as usual
struct FetchResult {
  std::variant<Snapshot, Unchanged, absl::Status> outcome;
  std::optional<base::nanoseconds> retry_after;  // with an error: do not fetch again before (Retry-After)
};

// Default period and times to live of a feed; the configuration may override them.
struct FeedTraits {
  base::nanoseconds period = std::chrono::minutes(15);
  base::nanoseconds ttl = std::chrono::hours(2);              // of spot prices and resource types; 0: never stale
  base::nanoseconds on_demand_ttl = std::chrono::hours(336);  // of on-demand and reserved prices; 0: never stale
  // True for prices that a person wrote: a complete answer replaces the last one (prices that it does not contain are
  // removed at once), and large steps, fewer prices and spot prices above on-demand are accepted. The poller retries
  // after every period, without backoff.
  bool authoritative = false;
};

// Fetch is called by one thread at a time, name and traits by any thread. The poller owns its feeds.
class Feed {
 public:
  virtual ~Feed() = default;
  // The name in the configuration, unique in a service; the label `source` of metrics.
  virtual const std::string& name() const = 0;
  virtual FeedTraits traits() const = 0;
  // Blocks at most for the feed's own timeouts, and returns soon after `stop`. `now` is the time of the call by our
  // clock, for requests that need a time and for computing ages.
  virtual FetchResult Fetch(base::WallTime now, std::stop_token stop) = 0;
};

}  // namespace medley::sched
