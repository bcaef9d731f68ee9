// Recorded prices (tests/data/prices) and a feed that replays them. Times are those of the recording.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/base/testing/fake_clock.h"
#include "scheduler-service/catalog/poller.h"
#include "scheduler-service/catalog/testing/scripted_feed.h"

namespace medley::sched {

inline std::string RecordedText(const std::string& name) {
  const char* root = std::getenv("MEDLEY_SOURCE_DIR");
  auto text = base::ReadFile(std::filesystem::path(root == nullptr ? "." : root) / "tests/data/prices" / name);
  MEDLEY_CHECK(text.ok(), base::ToString(text.status()));
  return *std::move(text);
}

// The rows of a CSV file, which must not contain quotes, without the header; a missing last field is empty.
inline std::vector<std::vector<std::string>> RecordedRows(const std::string& name) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream text(RecordedText(name));
  size_t columns = 0;
  for (std::string line; std::getline(text, line);) {
    std::vector<std::string> row;
    std::istringstream fields(line);
    for (std::string field; std::getline(fields, field, ',');) row.push_back(field);
    if (columns == 0) columns = row.size();
    row.resize(columns);
    rows.push_back(std::move(row));
  }
  rows.erase(rows.begin());
  return rows;
}

inline base::WallTime At(const std::string& time) {
  const auto parsed = base::ParseTime(time);
  MEDLEY_CHECK(parsed.ok(), base::ToString(parsed.status()));
  return *parsed;
}

// A poller with one feed, whose result the test sets in every step.
class Replay {
 public:
  explicit Replay(base::WallTime start, FeedTraits traits = Unaging(), PollerOptions options = {})
      : clock_(start - (base::FakeClock(start).Now() - start)),  // a new FakeClock does not start at its argument
        store_({.max_age = std::chrono::hours(24 * 3650)}) {
    traits.period = base::nanoseconds(0);
    options.jitter = 0;
    options.backoff = {base::nanoseconds(0), base::nanoseconds(1), 2, 0};
    std::vector<ConfiguredFeed> slots(1);
    slots[0].feed = std::make_unique<ScriptedFeed>("replay", traits, [this](base::WallTime, std::stop_token) {
      return FetchResult{answer_, {}};
    });
    poller_ = std::make_unique<Poller>(options, std::move(slots), store_, metrics_, clock_);
  }
  static FeedTraits Unaging() {
    FeedTraits traits;
    traits.ttl = traits.on_demand_ttl = base::nanoseconds(0);
    return traits;
  }

  // Advances the clock to `time` (never back) and lets the feed return `answer` (Snapshot, Unchanged or Status).
  template <typename Answer>
  void Step(base::WallTime time, Answer answer) {
    if (time > clock_.Now()) clock_.Advance(time - clock_.Now());
    answer_ = std::move(answer);
    poller_->Step({});
  }
  const CatalogEntry* Find(const std::string& key) {
    shown_ = store_.Get();
    for (const CatalogEntry& entry : shown_->entries) {
      if (KeyOf(entry) == key || (!entry.resource_type.empty() && entry.resource_type == key)) return &entry;
    }
    return nullptr;
  }
  double Count(const std::string& name, const metrics::Labels& labels) {
    return metrics_.GetCounter(name, "", labels).Value();
  }

  base::FakeClock clock_;
  CatalogStore store_;
  metrics::Registry metrics_;

 private:
  std::variant<Snapshot, Unchanged, absl::Status> answer_ = Unchanged();
  std::unique_ptr<Poller> poller_;
  CatalogSnapshot shown_;
};

}  // namespace medley::sched
