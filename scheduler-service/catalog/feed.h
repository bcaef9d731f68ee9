// A source of prices: fetches and parses, and nothing else.
//
// The poller (poller.h) owns everything around it: when to ask (period, jitter, backoff, Retry-After), whether an
// answer is believed (acceptance.h), for how long (staleness.h), which source wins, and when planners are told
// (hysteresis.h). A feed therefore reports what the source says as it stands: it does not clamp, smooth, merge or
// remember prices. It may keep what makes the next question cheaper (ETag, Last-Modified, the hash of a file).
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

// What one fetch found. Whole or not at all: an entry that cannot be parsed makes the fetch an error, but what the
// source says it has no price for ("N/A", an empty spot column, a machine without spot) is left out.
struct Snapshot {
  // Several for one key are fine: the latest effective_at wins; of those the dearer, with a warning.
  std::vector<CatalogEntry> entries;
  // True: all that the source has within the feed's selection, so a much smaller answer than the last one is refused.
  // False: a region or page could not be had; keys that are not here stay as they are.
  bool complete = true;
  std::vector<absl::Status> warnings;  // for the log: what is missing and why
};

// The source says that nothing changed since the last answer that was not an error (HTTP 304, same content). Confirms
// every price of that answer.
struct Unchanged {};

// Or an error, whose code is what the metric says:
//   INVALID_ARGUMENT   the body is not what the source documents (counted as rejected, reason "malformed")
//   RESOURCE_EXHAUSTED rate limited (429), or more bytes or pages than allowed
//   UNAUTHENTICATED, PERMISSION_DENIED credentials; NOT_FOUND, UNAVAILABLE, DEADLINE_EXCEEDED as everywhere
struct FetchResult {
  std::variant<Snapshot, Unchanged, absl::Status> outcome;
  std::optional<base::nanoseconds> retry_after;  // Retry-After, with an error: do not ask before
};

// How often a source is worth asking and how long an answer holds, unless the configuration says otherwise.
struct FeedTraits {
  base::nanoseconds period = std::chrono::minutes(15);
  base::nanoseconds ttl = std::chrono::hours(2);              // spot prices, resource types; 0: they do not go stale
  base::nanoseconds on_demand_ttl = std::chrono::hours(336);  // on-demand and reserved prices; 0 likewise
  // A person wrote it: a complete answer replaces the one before (what it does not name is gone at once), and steps,
  // shrinking and spot above on-demand are taken as meant. Failures are retried every period, not backed off.
  bool authoritative = false;
};

// Fetch is called by one thread at a time, name and traits by any. Owned by the poller.
class Feed {
 public:
  virtual ~Feed() = default;
  // From the configuration; unique among the feeds of a service. The label `source` of metrics.
  virtual const std::string& name() const = 0;
  virtual FeedTraits traits() const = 0;
  // Blocks at most as long as its own timeouts allow, and ends soon after `stop`. `now`: our clock when it was called,
  // for what the source needs in its question and for ages.
  virtual FetchResult Fetch(base::WallTime now, std::stop_token stop) = 0;
};

}  // namespace medley::sched
