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

struct Poller::Slot {
  size_t index = 0;
  std::unique_ptr<Feed> feed;
  base::nanoseconds period{};
  bool authoritative = false;
  // State below is protected by the poller's mutex_.
  base::Backoff backoff;
  base::Rng rng;
  base::SteadyTime due;
  std::string last_error;  // told once

  Slot(base::Backoff::Options options, uint64_t seed) : backoff(options, seed), rng(seed + 1) {}
};

namespace {

std::vector<SourceOptions> SourcesOf(const std::vector<FeedSlot>& feeds) {
  std::vector<SourceOptions> out;
  for (const FeedSlot& slot : feeds) {
    const FeedTraits traits = slot.feed->traits();
    out.push_back({slot.feed->name(), slot.priority, slot.ttl.value_or(traits.ttl),
                   slot.on_demand_ttl.value_or(traits.on_demand_ttl),
                   slot.authoritative.value_or(traits.authoritative)});
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

Poller::Poller(PollerOptions options, std::vector<FeedSlot> feeds, CatalogStore& store, metrics::Registry& metrics,
               base::Clock& clock)
    : options_(std::move(options)),
      store_(store),
      metrics_(metrics),
      clock_(clock),
      book_(options_.book, SourcesOf(feeds)) {
  for (size_t i = 0; i < feeds.size(); ++i) {
    const FeedTraits traits = feeds[i].feed->traits();
    auto slot = std::make_unique<Slot>(options_.backoff, base::Hash64(feeds[i].feed->name(), options_.seed));
    slot->index = i;
    slot->period = feeds[i].period.value_or(traits.period);
    slot->authoritative = feeds[i].authoritative.value_or(traits.authoritative);
    slot->feed = std::move(feeds[i].feed);
    // There from the start, so that rates see the first answer.
    for (const char* result : {"ok", "unchanged"}) FetchCounter(slot->feed->name(), result);
    slots_.push_back(std::move(slot));
  }
  PublishCounter();
  Restore();
}

Poller::~Poller() { Stop(); }

void Poller::Start() {
  for (const auto& slot : slots_) {
    if (slot->authoritative) Ask(*slot, std::stop_token());
  }
  for (const auto& slot : slots_) {
    threads_.emplace_back([this, slot = slot.get()](std::stop_token stop) {
      while (!stop.stop_requested()) {
        base::SteadyTime due;
        {
          base::MutexLock lock(mutex_);
          due = slot->due;
        }
        if (!clock_.SleepUntil(due, stop)) return;
        Ask(*slot, stop);
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
  for (const auto& slot : slots_) {
    base::SteadyTime due;
    {
      base::MutexLock lock(mutex_);
      due = slot->due;
    }
    if (due <= clock_.Steady()) Ask(*slot, stop);
    base::MutexLock lock(mutex_);
    next = std::min(next, slot->due);
  }
  {
    base::MutexLock lock(mutex_);
    Publish();
  }
  Save(false);
  return next;
}

void Poller::Ask(Slot& slot, std::stop_token stop) {
  const FetchResult result = slot.feed->Fetch(clock_.Now(), stop);
  if (stop.stop_requested()) return;
  base::MutexLock lock(mutex_);
  Apply(slot, result);
  Schedule(slot, result);
  Publish();
}

void Poller::Apply(Slot& slot, const FetchResult& result) {
  std::string outcome = "ok";
  if (const auto* status = std::get_if<absl::Status>(&result.outcome)) {
    outcome = ResultOf(*status);
    ApplyError(slot, *status);
  } else {
    slot.last_error.clear();
    if (const auto* snapshot = std::get_if<Snapshot>(&result.outcome)) {
      outcome = snapshot->complete ? "ok" : "partial";
      ApplySnapshot(slot, *snapshot);
    } else {
      outcome = "unchanged";
      book_.Unchanged(slot.index, clock_.Now());
    }
  }
  FetchCounter(slot.feed->name(), outcome).Increment();
}

metrics::Counter& Poller::FetchCounter(const std::string& source, const std::string& result) {
  return metrics_.GetCounter("medley_price_fetch_total", "Questions to sources of prices, by the answer",
                             {{"source", source}, {"result", result}});
}

metrics::Counter& Poller::PublishCounter() {
  return metrics_.GetCounter("medley_price_publish_total", "Revisions of the price catalog published");
}

void Poller::ApplySnapshot(Slot& slot, const Snapshot& snapshot) {
  const AcceptanceReport report = book_.Take(slot.index, snapshot, clock_.Now());
  for (const auto& [reason, times] : report.reasons) CountRejected(slot.feed->name(), reason, times);
  for (const absl::Status& warning : snapshot.warnings) {
    log::Warn("prices: part of an answer is missing",
              {{"source", slot.feed->name()}, {"error", base::Message(warning)}});
  }
  for (const std::string& note : report.notes) {
    log::Warn(report.taken ? "prices: not taken as they came" : "prices refused, the last good ones stay",
              {{"source", slot.feed->name()}, {"what", note}});
  }
}

void Poller::ApplyError(Slot& slot, const absl::Status& status) {
  const std::string text = base::Message(status);
  if (text == slot.last_error) return;
  slot.last_error = text;
  if (status.code() == absl::StatusCode::kInvalidArgument || status.code() == absl::StatusCode::kDataLoss) {
    CountRejected(slot.feed->name(), "malformed", 1);
  }
  log::Warn("prices refused, the last good ones stay", {{"source", slot.feed->name()}, {"error", text}});
}

void Poller::CountRejected(const std::string& source, const std::string& reason, int times) {
  metrics_
      .GetCounter("medley_price_rejected_total", "Prices and answers that were not taken as they came",
                  {{"source", source}, {"reason", reason}})
      .Increment(times);
}

void Poller::Schedule(Slot& slot, const FetchResult& result) {
  base::nanoseconds wait =
      base::FromSeconds(base::ToSeconds(slot.period) * slot.rng.Uniform(1 - options_.jitter, 1 + options_.jitter));
  if (!std::holds_alternative<absl::Status>(result.outcome)) {
    slot.backoff.Reset();
  } else if (!slot.authoritative) {
    wait = slot.backoff.Next();
    if (result.retry_after) wait = std::max(wait, std::min(*result.retry_after, options_.max_retry_after));
  }
  slot.due = clock_.Steady() + wait;
}

void Poller::Publish() {
  const base::WallTime now = clock_.Now();
  std::vector<CatalogEntry> entries = book_.Publish(now);
  ShowAges(now);
  if (entries.empty() && store_.Get()->revision == 0) return;  // nothing is known yet
  if (!store_.Publish(std::move(entries), now)) return;
  unsaved_ = true;
  PublishCounter().Increment();
  ShowPrices();
}

void Poller::ShowAges(base::WallTime now) {
  for (const auto& slot : slots_) {
    base::WallTime newest;
    for (const auto& [key, entry] : book_.accepted(slot->index).known) newest = std::max(newest, entry.observed_at);
    if (newest == base::WallTime()) continue;
    metrics_
        .GetGauge("medley_price_age_seconds", "Since the source last confirmed a price",
                  {{"source", slot->feed->name()}})
        .Set(base::ToSeconds(now - newest));
    metrics_
        .GetGauge("medley_price_confirmed_timestamp_seconds", "When the source last confirmed a price, Unix time",
                  {{"source", slot->feed->name()}})
        .Set(base::ToSeconds(newest.time_since_epoch()));
  }
}

void Poller::ShowPrices() {
  const CatalogSnapshot catalog = store_.Get();
  ShowPriceMetrics(*catalog, metrics_, shown_);
  log::Info("prices published",
            {{"revision", std::to_string(catalog->revision)}, {"entries", std::to_string(catalog->entries.size())}});
}

void Poller::Restore() {
  if (options_.last_good.empty()) return;
  auto last = LoadLastGood(options_.last_good);
  if (absl::IsNotFound(last.status())) return;
  if (!last.ok()) {
    CountRejected("last-good", "corrupt", 1);
    log::Warn("last good prices ignored",
              {{"file", options_.last_good.string()}, {"error", base::Message(last.status())}});
    return;
  }
  base::MutexLock lock(mutex_);
  store_.ContinueAfter(last->revision);
  Recall(std::move(*last), book_);
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
    last = Remember(book_, store_.Get()->revision);
  }
  const absl::Status saved = SaveLastGood(options_.last_good, last);
  if (saved.ok()) return;
  log::Warn("last good prices not saved", {{"file", options_.last_good.string()}, {"error", base::Message(saved)}});
  CountRejected("last-good", "unwritable", 1);
}

}  // namespace medley::sched
