// Replays months and years of recorded prices through the catalog, with a fake clock. The tests compute the expected
// result from the recording and from the rules in docs/operate/prices.md, independent of the code under test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "common/model/planning.h"
#include "scheduler-service/feeds/spot_history_parser.h"
#include "tests/integration/scheduler/prices/recorded.h"

namespace medley::sched {
namespace {

using Row = std::vector<std::string>;
using std::chrono::hours;
using std::chrono::minutes;

// The expected published series of one key: an independent implementation of the hysteresis rule.
struct ExpectedSeries {
  double price = 0;
  base::WallTime at;
  std::vector<double> series;
  void See(double now_price, base::WallTime now) {
    const double moved = std::abs(now_price - price);
    const bool first = series.empty();
    const bool large = moved >= 0.1 * price * (1 - 1e-12);
    const bool enough = moved > 0.02 * price * (1 + 1e-12) && moved > 0.001 && now - at >= minutes(10);
    if (!first && !large && !enough) return;
    price = now_price;
    at = now;
    series.push_back(now_price);
  }
};

std::vector<double> Published(const CatalogStore& store, const std::string& key) {
  std::vector<double> out;
  for (const PriceSeries& series : store.History(key, base::WallTime())) {
    for (const PricePoint& point : series.points) out.push_back(point.price_per_instance_hour);
  }
  return out;
}

Snapshot Part(std::vector<CatalogEntry> entries) { return {std::move(entries), false, {}}; }

TEST(ReplayTest, ExactRecordsOfThreeMonths) {
  std::vector<Row> rows = RecordedRows("history/aws_spot_p3.2xlarge.csv");
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a[0] < b[0]; });
  PollerOptions options;
  options.book.acceptance.forget_after = hours(24 * 365);
  Replay replay(At(rows[0][0]), Replay::Unaging(), options);
  std::map<std::string, ExpectedSeries> expected;
  std::map<std::string, double> last;
  int changes = 0;
  for (const Row& row : rows) {
    const std::string region = row[1].substr(0, row[1].size() - 1);
    const double price = std::stod(row[2]);
    replay.Step(At(row[0]), Part({Offer("aws", region, row[1], "p3.2xlarge", "spot", price, At(row[0]))}));
    const std::string key = "aws/" + region + "/" + row[1] + "/p3.2xlarge/spot";
    expected[key].See(price, At(row[0]));
    if (const auto [it, is_new] = last.try_emplace(key, price); !is_new && it->second != price) {
      ++changes;
      it->second = price;
    }
  }
  size_t publishes = 0;
  for (const auto& [key, wanted] : expected) {
    EXPECT_EQ(Published(replay.store_, key), wanted.series) << key;
    publishes += wanted.series.size() - 1;  // the first price of a zone is not a change
    EXPECT_NEAR(replay.Find(key)->price_per_instance_hour, last[key], 0.02 * last[key] + 0.001) << key;
  }
  EXPECT_EQ(expected.size(), 17u);
  EXPECT_EQ(changes, 2755);
  EXPECT_EQ(publishes, 186u);
  RecordProperty("changes", changes);
  RecordProperty("publishes", static_cast<int>(publishes));
}

std::vector<CatalogEntry> PollEntries(const std::string& name) {
  const auto page = ParseSpotHistoryJson(RecordedText("feeds/" + name));
  MEDLEY_CHECK(page.ok(), base::ToString(page.status()));
  std::vector<CatalogEntry> out;
  for (const SpotRecord& record : page->records) {
    const std::string region = record.zone.substr(0, record.zone.size() - 1);
    out.push_back(Offer("aws", region, record.zone, record.instance_type, "spot", record.price, record.since));
  }
  return out;
}

base::WallTime Newest(const std::vector<CatalogEntry>& entries) {
  base::WallTime newest;
  for (const CatalogEntry& entry : entries) newest = std::max(newest, entry.effective_at);
  return newest;
}

// The latest record of each zone.
std::map<std::string, CatalogEntry> Latest(const std::vector<CatalogEntry>& entries) {
  std::map<std::string, CatalogEntry> out;
  for (const CatalogEntry& entry : entries) {
    const auto [it, is_new] = out.try_emplace(KeyOf(entry), entry);
    if (!is_new && it->second.effective_at < entry.effective_at) it->second = entry;
  }
  return out;
}

TEST(ReplayTest, FivePollsOfAwsWithTheirGap) {
  std::vector<std::vector<CatalogEntry>> polls;
  for (int i = 0; i < 5; ++i) polls.push_back(PollEntries("us-east-1.p3.2xlarge.poll" + std::to_string(i) + ".json"));
  FeedTraits traits;  // TTL of two hours, like the feed
  PollerOptions options;
  options.book.acceptance.forget_after = hours(24 * 60);
  Replay replay(Newest(polls[0]), traits, options);
  for (size_t i = 0; i < polls.size(); ++i) {
    const base::WallTime now = std::max(Newest(polls[i]), replay.clock_.Now());
    std::vector<CatalogEntry> shuffled = polls[i];
    base::Rng rng(i);
    for (size_t k = shuffled.size(); k > 1; --k) std::swap(shuffled[k - 1], shuffled[rng.Below(k)]);
    replay.Step(now, Snapshot{shuffled, true, {}});
    for (const auto& [key, record] : Latest(polls[i])) {
      const CatalogEntry* entry = replay.Find(key);
      ASSERT_NE(entry, nullptr) << key;
      EXPECT_EQ(entry->quality, Quality::kLive);
      EXPECT_EQ(entry->effective_at, record.effective_at);
      EXPECT_NEAR(entry->price_per_instance_hour, record.price_per_instance_hour,
                  0.02 * record.price_per_instance_hour + 0.001);
    }
    if (i != 2) continue;
    // During the gap of 30 hours, prices become cached and then 25 % higher (no on-demand price is known); this is
    // published although no answer came.
    const std::string key = Latest(polls[2]).begin()->first;
    const double before = Latest(polls[2]).begin()->second.price_per_instance_hour;
    const absl::Status down = base::Unavailable("gap");
    replay.Step(now + hours(3), down);
    EXPECT_EQ(replay.Find(key)->quality, Quality::kCached);
    replay.Step(now + hours(7), down);
    EXPECT_EQ(replay.Find(key)->quality, Quality::kFallback);
    EXPECT_NEAR(replay.Find(key)->price_per_instance_hour, before * 1.25, 1e-9);
    replay.Step(now + hours(30), down);
    EXPECT_EQ(replay.Count("medley_price_fetch_total", {{"source", "replay"}, {"result", "unavailable"}}), 3);
  }
  // Older prices change nothing, and neither does a region without prices or an incomplete page.
  const int64_t revision = replay.store_.Get()->revision;
  const base::WallTime now = replay.clock_.Now() + minutes(15);
  const size_t zones = Latest(polls[4]).size();
  replay.Step(now, Part(polls[1]));
  EXPECT_EQ(replay.Count("medley_price_rejected_total", {{"source", "replay"}, {"reason", "out_of_order"}}),
            static_cast<double>(Latest(polls[1]).size()));
  EXPECT_EQ(replay.store_.Get()->revision, revision);
  EXPECT_TRUE(PollEntries("eu-north-1.p3.2xlarge.poll0.json").empty());
  replay.Step(now, Snapshot{PollEntries("eu-north-1.p3.2xlarge.poll0.json"), true, {}});
  EXPECT_EQ(replay.Count("medley_price_rejected_total", {{"source", "replay"}, {"reason", "shrunk"}}), 1);
  EXPECT_EQ(replay.store_.Get()->entries.size(), zones);
  const std::vector<CatalogEntry> capped = PollEntries("us-east-1.p2.xlarge.capped.json");
  replay.Step(now, Part(capped));
  EXPECT_EQ(replay.store_.Get()->entries.size(), zones + Latest(capped).size());
}

// GCP's price list at every weekly snapshot with a change.
class Weeks {
 public:
  Weeks() : rows_(RecordedRows("history/gcp_changes.csv")) {
    for (const Row& row : rows_) times_.insert(row[0]);
    std::stable_sort(rows_.begin(), rows_.end(), [](const Row& a, const Row& b) { return a[0] < b[0]; });
  }
  const std::set<std::string>& times() const { return times_; }
  std::vector<CatalogEntry> UpTo(const std::string& time) {
    for (; next_ < rows_.size() && rows_[next_][0] <= time; ++next_) {
      const Row& row = rows_[next_];
      list_[row[1] + row[2] + "od"] = Offer("gcp", row[2], "", row[1], "on-demand", std::stod(row[3]));
      if (!row[4].empty()) list_[row[1] + row[2]] = Offer("gcp", row[2], "", row[1], "spot", std::stod(row[4]));
    }
    std::vector<CatalogEntry> out;
    for (const auto& [key, entry] : list_) out.push_back(entry);
    return out;
  }

 private:
  std::vector<Row> rows_;
  std::set<std::string> times_;
  std::map<std::string, CatalogEntry> list_;
  size_t next_ = 0;
};

TEST(ReplayTest, FourYearsOfGcpWeekByWeek) {
  Weeks weeks;
  Replay replay(At(*weeks.times().begin()));
  std::map<std::string, ExpectedSeries> expected;
  for (const std::string& time : weeks.times()) {
    const std::vector<CatalogEntry> list = weeks.UpTo(time);
    replay.Step(At(time), Snapshot{list, true, {}});
    replay.Step(At(time) + minutes(15), Snapshot{list, true, {}});  // the next poll returns the same list
    for (const CatalogEntry& entry : list) expected[KeyOf(entry)].See(entry.price_per_instance_hour, At(time));
  }
  size_t publishes = 0;
  for (const auto& [key, wanted] : expected) {
    EXPECT_EQ(Published(replay.store_, key), wanted.series) << key;
    publishes += wanted.series.size() - 1;
  }
  EXPECT_GT(publishes, 300u);
  // Tokyo's H100 fell from 11.16 to 2.87 in one step: one poll leaves it unconfirmed, the next one accepts it.
  EXPECT_EQ(replay.Count("medley_price_rejected_total", {{"source", "replay"}, {"reason", "step"}}), 1);
  // The change that docs/operate/prices.md mentions: 2.55 to 6.33 USD/h.
  const std::vector<double> h100 = Published(replay.store_, "gcp/us-central1//a3-highgpu-1g/spot");
  EXPECT_NEAR(*std::min_element(h100.begin(), h100.end()), 2.553, 1e-3);
  EXPECT_NEAR(h100.back(), 6.326, 1e-3);
}

// AWS' on-demand price list of us-east-1 over time.
std::vector<CatalogEntry> AwsUpTo(const std::vector<Row>& rows, const std::string& time) {
  std::map<std::string, CatalogEntry> list;
  for (const Row& row : rows) {
    if (row[0] <= time) list[row[1]] = Offer("aws", "us-east-1", "", row[1], "on-demand", std::stod(row[2]));
  }
  std::vector<CatalogEntry> out;
  for (const auto& [type, entry] : list) out.push_back(entry);
  return out;
}

TEST(ReplayTest, WhichH100IsCheapestChangesOverTime) {
  const std::vector<Row> aws = RecordedRows("history/aws_on_demand_changes.csv");
  Weeks weeks;
  PollerOptions options;
  options.book.machines[{"aws", "p5.48xlarge"}] = {192, 2048.0 * (1 << 30), "h100", 8, 1};
  options.book.machines[{"gcp", "a3-highgpu-1g"}] = {26, 234.0 * (1 << 30), "h100", 1, 1};
  ResourceRule rule;
  rule.name = "h100";
  rule.cls = "GPU";
  rule.match = {.region = {"us-*"}, .gpu_model = {"h100"}};
  options.book.resources = {rule};
  Replay replay(At(*weeks.times().begin()), Replay::Unaging(), options);
  std::vector<std::string> winners;
  std::set<std::string> times = weeks.times();
  for (const Row& row : aws) times.insert(row[0]);
  times.insert("2026-08-10T00:00:00Z");  // AWS' public spot feed of those days: p5.48xlarge 19.49
  for (const std::string& time : times) {
    std::vector<CatalogEntry> list = weeks.UpTo(time);
    for (CatalogEntry& entry : AwsUpTo(aws, time)) list.push_back(std::move(entry));
    if (time >= "2026-08") list.push_back(Offer("aws", "us-east-1", "", "p5.48xlarge", "spot", 19.49));
    replay.Step(At(time), Snapshot{list, true, {}});
    double best = HUGE_VAL;
    std::string winner;
    for (const CatalogEntry& entry : list) {
      const model::Offering& o = *entry.offering;
      const bool h100 = o.instance_type == "p5.48xlarge" || o.instance_type == "a3-highgpu-1g";
      if (!h100 || o.region.substr(0, 3) != "us-") continue;
      const double gpu = entry.price_per_instance_hour / (o.provider == "aws" ? 8 : 1);
      if (gpu < best) {
        best = gpu;
        winner = o.provider + "/" + o.region + "/" + o.capacity_type;
      }
    }
    const CatalogEntry* chosen = replay.Find("h100");
    if (winner.empty()) {
      EXPECT_EQ(chosen, nullptr);
      continue;
    }
    ASSERT_NE(chosen, nullptr) << time;
    EXPECT_NEAR(chosen->price_per_unit_hour, best, 0.03 * best) << time;  // two bands of two per cent
    const std::string got =
        chosen->offering->provider + "/" + chosen->offering->region + "/" + chosen->offering->capacity_type;
    if (winners.empty() || winners.back() != got) winners.push_back(got);
  }
  // First only AWS on-demand is known, then GCP spot in one region after another, and last AWS spot.
  ASSERT_GE(winners.size(), 4u);
  EXPECT_EQ(winners.front(), "aws/us-east-1/on-demand");
  EXPECT_EQ(winners[1].substr(0, 4), "gcp/");
  EXPECT_EQ(winners.back(), "aws/us-east-1/spot") << testing::PrintToString(winners);
  RecordProperty("winners", testing::PrintToString(winners));
}

TEST(ReplayTest, TheCutOfJune2025IsPublishedAtOnce) {
  const std::vector<Row> aws = RecordedRows("history/aws_on_demand_changes.csv");
  const std::string before = "2025-03-31T13:14:23Z", cut = "2025-06-23T13:18:30Z";
  Replay replay(At(before));
  replay.Step(At(before), Snapshot{AwsUpTo(aws, before), true, {}});
  // Another price was published a second before.
  replay.Step(At(cut) - base::seconds(1), Part({Offer("aws", "us-east-1", "", "p5.48xlarge", "on-demand", 108.2)}));
  const int64_t revision = replay.store_.Get()->revision;
  replay.Step(At(cut), Snapshot{AwsUpTo(aws, cut), true, {}});
  EXPECT_EQ(replay.store_.Get()->revision, revision + 1);
  EXPECT_EQ(replay.Find("aws/us-east-1//p5.48xlarge/on-demand")->price_per_instance_hour, 55.04);
  EXPECT_EQ(replay.Find("aws/us-east-1//p4d.24xlarge/on-demand")->price_per_instance_hour, 21.957642);
  EXPECT_EQ(replay.Count("medley_price_rejected_total", {{"source", "replay"}, {"reason", "step"}}), 0);
  EXPECT_EQ(Published(replay.store_, "aws/us-east-1//p5.48xlarge/on-demand"),
            (std::vector<double>{98.32, 108.2, 55.04}));
}

TEST(ReplayTest, UnavailableMachinesAreRemovedAndReturn) {
  const std::map<std::string, std::string> types = {
      {"1v100", "p3.2xlarge"}, {"8v100", "p3.16xlarge"}, {"1k80", "p2.xlarge"}, {"8k80", "p2.8xlarge"}};
  const auto rows = RecordedRows("history/aws_availability_events.csv");
  const auto unavailable_for = minutes(3);  // like Karpenter
  PollerOptions options;
  for (const auto& [what, type] : types) {
    ResourceRule rule;
    rule.name = type;
    rule.cls = "GPU";
    rule.unit = UnitKind::kInstance;
    rule.limit = 4;
    rule.match.instance_type = {type};
    options.book.resources.push_back(rule);
  }
  Replay replay(At(rows[0][0]), Replay::Unaging(), options);
  std::vector<CatalogEntry> list;
  for (const auto& [what, type] : types) list.push_back(Offer("aws", "us-east-1", "", type, "spot", 1));
  replay.Step(At(rows[0][0]), Snapshot{list, true, {}});
  const auto available = [&](const std::string& type) {
    model::PlanRequest request;
    request.resources = {{type}};
    ResolvePrices(*replay.store_.Get(), request);
    EXPECT_EQ(request.resources[0].price_per_unit_hour > 0, replay.Find(type)->available);
    return replay.Find(type)->available;
  };
  // Check at every event and at its expiry: the last event of each type decides.
  std::map<base::WallTime, std::vector<Row>> timeline;
  for (const Row& row : rows) {
    timeline[At(row[0])].push_back(row);
    timeline[At(row[0]) + unavailable_for];
  }
  std::map<std::string, base::WallTime> gone_until;
  std::map<std::string, bool> was;
  int left = 0, returned = 0;
  for (const auto& [now, events] : timeline) {
    std::vector<CatalogEntry> answer;
    for (const Row& row : events) {
      ASSERT_TRUE(types.contains(row[2] + row[3])) << row[2] << row[3];
      CatalogEntry event = Offer("aws", "us-east-1", "", types.at(row[2] + row[3]), "spot", 1);
      base::WallTime& until = gone_until[event.offering->instance_type];
      if (row[1] == "created") {
        if (until != now + unavailable_for) until = now;  // two requests in one second: the failure wins
      } else {
        until = now + unavailable_for;
        event.price_per_instance_hour = 0;
        event.available = false;
        event.unavailable_until = now + unavailable_for;
      }
      answer.push_back(std::move(event));
    }
    replay.Step(now, Part(answer));
    for (const auto& [what, type] : types) {
      const bool is = available(type);
      ASSERT_EQ(is, now >= gone_until[type]) << base::FormatTime(now) << " " << type;
      const auto [before, is_new] = was.try_emplace(type, true);
      if (before->second && !is) ++left;
      if (!before->second && is) ++returned;
      before->second = is;
    }
  }
  EXPECT_GT(left,
            280);  // 290 creations failed and 32 machines were interrupted, some within three minutes of each other
  EXPECT_EQ(returned, left);
}

}  // namespace
}  // namespace medley::sched
