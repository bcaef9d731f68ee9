#include "scheduler-service/catalog/poller.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "common/base/hash.h"
#include "common/base/log.h"
#include "common/base/status.h"
#include "scheduler-service/catalog/last_good.h"
#include "scheduler-service/catalog/price_metrics.h"

namespace medley::sched {

struct Poller::FeedState {
  size_t index = 0;
  std::unique_ptr<Feed> feed;
  base::nanoseconds period{};
  bool authoritative = false;
  // State below is protected by the poller's mutex_.
  base::Backoff backoff;
  base::Rng rng;
  base::SteadyTime due;
  std::string last_error;  // logged; the same error is not logged again

  FeedState(base::Backoff::Options options, uint64_t seed) : backoff(options, seed), rng(seed + 1) {}
};

namespace {

std::vector<SourceOptions> SourcesOf(const std::vector<ConfiguredFeed>& feeds) {
  std::vector<SourceOptions> out;
  for (const ConfiguredFeed& configured : feeds) {
    const FeedTraits traits = configured.feed->traits();
    out.push_back({configured.feed->name(), configured.priority, configured.ttl.value_or(traits.ttl),
                   configured.on_demand_ttl.value_or(traits.on_demand_ttl),
                   configured.authoritative.value_or(traits.authoritative), configured.configuration});
  }
  return out;
}

// "RESOURCE_EXHAUSTED" as a label: resource_exhausted.
std::string ResultOf(const absl::Status& status) {
  std::string text = absl::StatusCodeToString(status.code());
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

}  // namespace

Poller::Poller(PollerOptions options, std::vector<ConfiguredFeed> feeds, CatalogStore& store,
               metrics::Registry& metrics, base::Clock& clock)
    : options_(std::move(options)),
      store_(store),
      metrics_(metrics),
      clock_(clock),
      book_(options_.book, SourcesOf(feeds)) {
  for (size_t i = 0; i < feeds.size(); ++i) {
    const FeedTraits traits = feeds[i].feed->traits();
    auto state = std::make_unique<FeedState>(options_.backoff, base::Hash64(feeds[i].feed->name(), options_.seed));
    state->index = i;
    state->period = feeds[i].period.value_or(traits.period);
    state->authoritative = feeds[i].authoritative.value_or(traits.authoritative);
    state->feed = std::move(feeds[i].feed);
    // Create the counters now, so that a rate includes the first result.
    for (const char* result : {"ok", "unchanged"}) FetchCounter(state->feed->name(), result);
    states_.push_back(std::move(state));
  }
  PublishCounter();
  Restore();
}

Poller::~Poller() { Stop(); }

void Poller::Start() {
  for (const auto& state : states_) {
    if (state->authoritative) Poll(*state, std::stop_token());
  }
  for (const auto& state : states_) {
    threads_.emplace_back([this, state = state.get()](std::stop_token stop) {
      while (!stop.stop_requested()) {
        base::SteadyTime due;
        {
          base::MutexLock lock(mutex_);
          due = state->due;
        }
        if (!clock_.SleepUntil(due, stop)) return;
        Poll(*state, stop);
      }
    });
  }
  threads_.emplace_back([this](std::stop_token stop) {
    while (!stop.stop_requested() && clock_.SleepFor(options_.tick, stop)) {
      {
        base::MutexLock lock(mutex_);
        Publish();
      }
      Save(false);
    }
  });
}

void Poller::Stop() {
  for (std::jthread& thread : threads_) thread.request_stop();
  const bool ran = !threads_.empty();
  threads_.clear();  // joins
  if (ran) Save(true);
}

base::SteadyTime Poller::Step(std::stop_token stop) {
  base::SteadyTime next = clock_.Steady() + options_.tick;
  for (const auto& state : states_) {
    base::SteadyTime due;
    {
      base::MutexLock lock(mutex_);
      due = state->due;
    }
    if (due <= clock_.Steady()) Poll(*state, stop);
    base::MutexLock lock(mutex_);
    next = std::min(next, state->due);
  }
  {
    base::MutexLock lock(mutex_);
    Publish();
  }
  Save(false);
  return next;
}

void Poller::Poll(FeedState& state, std::stop_token stop) {
  const FetchResult result = state.feed->Fetch(clock_.Now(), stop);
  if (stop.stop_requested()) return;
  base::MutexLock lock(mutex_);
  Apply(state, result);
  Schedule(state, result);
  Publish();
}

void Poller::Apply(FeedState& state, const FetchResult& result) {
  std::string outcome = "ok";
  if (const auto* status = std::get_if<absl::Status>(&result.outcome)) {
    outcome = ResultOf(*status);
    ApplyError(state, *status);
  } else {
    state.last_error.clear();
    if (const auto* snapshot = std::get_if<Snapshot>(&result.outcome)) {
      outcome = snapshot->complete ? "ok" : "partial";
      ApplySnapshot(state, *snapshot);
    } else {
      outcome = "unchanged";
      book_.Unchanged(state.index, clock_.Now());
    }
  }
  FetchCounter(state.feed->name(), outcome).Increment();
}

metrics::Counter& Poller::FetchCounter(const std::string& source, const std::string& result) {
  return metrics_.GetCounter("medley_price_fetch_total", "Fetches from price sources, by result",
                             {{"source", source}, {"result", result}});
}

metrics::Counter& Poller::PublishCounter() {
  return metrics_.GetCounter("medley_price_publish_total", "Revisions of the price catalog published");
}

void Poller::ApplySnapshot(FeedState& state, const Snapshot& snapshot) {
  const AcceptanceReport report = book_.Take(state.index, snapshot, clock_.Now());
  for (const auto& [reason, times] : report.reasons) CountRejected(state.feed->name(), reason, times);
  for (const absl::Status& warning : snapshot.warnings) {
    base::log::Warn("price answer is incomplete", {{"source", state.feed->name()}, {"error", base::Message(warning)}});
  }
  for (const std::string& note : report.notes) {
    base::log::Warn(
        report.taken ? "price rejected or corrected" : "price answer rejected, keeping the last good prices",
        {{"source", state.feed->name()}, {"reason", note}});
  }
}

void Poller::ApplyError(FeedState& state, const absl::Status& status) {
  const std::string text = base::Message(status);
  if (text == state.last_error) return;
  state.last_error = text;
  if (status.code() == absl::StatusCode::kInvalidArgument || status.code() == absl::StatusCode::kDataLoss) {
    CountRejected(state.feed->name(), "malformed", 1);
  }
  base::log::Warn("fetching prices failed, keeping the last good prices",
                  {{"source", state.feed->name()}, {"error", text}});
}

void Poller::CountRejected(const std::string& source, const std::string& reason, int times) {
  metrics_
      .GetCounter("medley_price_rejected_total", "Prices and answers that were rejected or corrected, by reason",
                  {{"source", source}, {"reason", reason}})
      .Increment(times);
}

void Poller::Schedule(FeedState& state, const FetchResult& result) {
  base::nanoseconds wait =
      base::FromSeconds(base::ToSeconds(state.period) * state.rng.Uniform(1 - options_.jitter, 1 + options_.jitter));
  if (!std::holds_alternative<absl::Status>(result.outcome)) {
    state.backoff.Reset();
  } else if (!state.authoritative) {
    wait = state.backoff.Next();
    if (result.retry_after) wait = std::max(wait, std::min(*result.retry_after, options_.max_retry_after));
  }
  state.due = clock_.Steady() + wait;
}

void Poller::Publish() {
  const base::WallTime now = clock_.Now();
  std::vector<CatalogEntry> entries = book_.Publish(now);
  UpdateAgeMetrics(now);
  if (entries.empty() && store_.Get()->revision == 0) return;  // no source has returned prices yet
  if (!store_.Publish(std::move(entries), now)) return;
  unsaved_ = true;
  PublishCounter().Increment();
  UpdatePriceMetrics();
}

void Poller::UpdateAgeMetrics(base::WallTime now) {
  for (const auto& state : states_) {
    base::WallTime newest;
    for (const auto& [key, entry] : book_.accepted(state->index).known) newest = std::max(newest, entry.observed_at);
    if (newest == base::WallTime()) continue;
    metrics_
        .GetGauge("medley_price_age_seconds", "Seconds since the source last confirmed a price",
                  {{"source", state->feed->name()}})
        .Set(base::ToSeconds(now - newest));
    metrics_
        .GetGauge("medley_price_confirmed_timestamp_seconds", "Unix time at which the source last confirmed a price",
                  {{"source", state->feed->name()}})
        .Set(base::ToSeconds(newest.time_since_epoch()));
  }
}

void Poller::UpdatePriceMetrics() {
  const CatalogSnapshot catalog = store_.Get();
  ShowPriceMetrics(*catalog, metrics_, shown_);
  base::log::Info("prices published", {{"revision", std::to_string(catalog->revision)},
                                       {"entries", std::to_string(catalog->entries.size())}});
}

void Poller::Restore() {
  if (options_.last_good.empty()) return;
  auto last = LoadLastGood(options_.last_good);
  if (absl::IsNotFound(last.status())) return;
  if (!last.ok()) {
    CountRejected("last-good", "corrupt", 1);
    base::log::Warn("ignoring the last-good price file",
                    {{"file", options_.last_good.string()}, {"error", base::Message(last.status())}});
    return;
  }
  base::MutexLock lock(mutex_);
  store_.ContinueAfter(last->revision);
  RestoreLastGood(std::move(*last), book_);
  Publish();
}

void Poller::Save(bool always) {
  if (options_.last_good.empty()) return;
  LastGood last;
  {
    base::MutexLock lock(mutex_);
    if (!always && !unsaved_ && clock_.Steady() - saved_at_ < options_.save_every) return;
    unsaved_ = false;
    saved_at_ = clock_.Steady();
    last = CaptureLastGood(book_, store_.Get()->revision);
  }
  const absl::Status saved = SaveLastGood(options_.last_good, last);
  if (saved.ok()) return;
  base::log::Warn("saving the last-good price file failed",
                  {{"file", options_.last_good.string()}, {"error", base::Message(saved)}});
  CountRejected("last-good", "unwritable", 1);
}

}  // namespace medley::sched
