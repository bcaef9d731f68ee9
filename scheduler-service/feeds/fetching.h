// Code that the feeds over HTTP share. Internal to feeds/.
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "scheduler-service/catalog/feed.h"
#include "scheduler-service/feeds/http_fetcher.h"
#include "scheduler-service/feeds/parsed_prices.h"

namespace medley::sched {

// An error, and the time after which the source allows the next request.
struct FetchFailure {
  absl::Status status;
  std::optional<base::nanoseconds> retry_after;
};

inline FetchResult ToResult(FetchFailure failure) { return {std::move(failure.status), failure.retry_after}; }

// Combines the results of several parts (regions or documents): a complete snapshot if all succeeded, a partial one if
// some did, an error if none did.
class Parts {
 public:
  void Add(ParsedPrices prices) {
    ++good_;
    for (CatalogEntry& entry : prices.entries) snapshot_.entries.push_back(std::move(entry));
    for (absl::Status& warning : prices.warnings) snapshot_.warnings.push_back(std::move(warning));
  }
  // Marks the snapshot as partial, with the reason as a warning.
  void Incomplete(absl::Status why) {
    snapshot_.complete = false;
    snapshot_.warnings.push_back(std::move(why));
  }
  void Fail(FetchFailure failure) {
    if (!first_) first_ = failure;
    if (failure.retry_after > retry_after_) retry_after_ = failure.retry_after;
    Incomplete(std::move(failure.status));
  }
  // True if the feed must not fetch further parts: it was rate limited or stopped.
  bool GiveUp() const {
    return first_ && (first_->retry_after || first_->status.code() == absl::StatusCode::kResourceExhausted ||
                      first_->status.code() == absl::StatusCode::kCancelled);
  }
  FetchResult Finish() && {
    if (good_ == 0 && first_) return {std::move(first_->status), retry_after_};
    return {std::move(snapshot_), retry_after_};
  }

 private:
  int good_ = 0;
  Snapshot snapshot_;
  std::optional<FetchFailure> first_;
  std::optional<base::nanoseconds> retry_after_;
};

}  // namespace medley::sched
