#include "worker/ps/row_tiers.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "common/base/log.h"
#include "common/base/status.h"

namespace medley::worker {
namespace {

constexpr size_t kWrittenTogether = 512;       // rows at most
constexpr size_t kMayWait = size_t{64} << 10;  // bytes of them, or the next part of the budget
constexpr int64_t kWaitingPart = 32;
constexpr uint32_t kLooks = 4096;  // of the hand, for one row
constexpr size_t kVictimsAhead = 8;
constexpr int64_t kRetryEach = 64;  // steps
constexpr int64_t kLeastRows = 64;  // of a table that are hot
constexpr uint32_t kFreshPart = 8;  // of these
// Bytes for what finds a cold row: at least and at most these parts of the budget.
constexpr double kIndexBytes = 17;
constexpr double kLeastColdPart = 1.0 / 16, kMostColdPart = 0.3;
constexpr double kOlderShare = 0.9, kSmoothing = 1.0 / 64;  // of HotRows::oldest

// Divides `bytes` among tables that could use so many each: what is left of those that need less, others may use.
std::vector<double> Divide(double bytes, const std::vector<double>& needs) {
  std::vector<double> shares(needs.size(), 0);
  std::vector<size_t> order(needs.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, {}, [&](size_t i) { return needs[i]; });
  for (size_t n = 0; n < order.size(); ++n) {
    const double share = std::min(needs[order[n]], bytes / static_cast<double>(order.size() - n));
    shares[order[n]] = share;
    bytes -= share;
  }
  return shares;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RowTiers>> RowTiers::Open(const RowTierOptions& options,
                                                         std::span<const RowTable> tables) {
  if (options.memory_bytes <= 0) return nullptr;
  std::vector<double> needs;
  std::vector<size_t> row_bytes;
  double all = 0, rows = 0;
  for (const RowTable& t : tables) {
    needs.push_back(static_cast<double>(t.spec().rows) * static_cast<double>(t.BytesPerRow()));
    all += needs.back();
    rows += static_cast<double>(t.spec().rows);
    row_bytes.push_back(sizeof(int64_t) + t.stride() * sizeof(float));
  }
  const auto budget = static_cast<double>(options.memory_bytes);
  if (all <= budget) return nullptr;
  MEDLEY_ASSIGN_OR_RETURN(std::unique_ptr<ColdRows> cold, ColdRows::Open({.folder = options.folder,
                                                                          .row_bytes = std::move(row_bytes),
                                                                          .most_bytes = options.most_disk_bytes}));
  std::unique_ptr<RowTiers> tiers(new RowTiers(options, std::move(cold)));
  const double index = std::clamp(rows * kIndexBytes, budget * kLeastColdPart, budget * kMostColdPart);
  const std::vector<double> shares = Divide(budget - index, needs);
  for (size_t i = 0; i < tables.size(); ++i) {
    const double hot = shares[i] / static_cast<double>(tables[i].BytesPerRow());
    const auto capacity = static_cast<uint32_t>(
        std::clamp(hot, static_cast<double>(kLeastRows), static_cast<double>(RowTable::kMaxRows)));
    tiers->hot_.push_back({.capacity = capacity, .fresh_capacity = capacity / kFreshPart, .fresh = {}});
  }
  return tiers;
}

uint32_t RowTiers::FindVictim(size_t table, const RowTable& t, int64_t pinned_from) {
  HotRows& hot = hot_[table];
  if (t.size() < hot.capacity || full_) return RowTable::kNoRow;
  if (hot.fresh.size() > kVictimsAhead) {
    t.PrefetchRow(hot.fresh[kVictimsAhead]);
    t.PrefetchPlace(hot.fresh[kVictimsAhead / 2]);
  }
  const uint32_t victim = FreshVictim(hot, t, pinned_from);
  return victim != RowTable::kNoRow ? victim : EstablishedVictim(hot, t, pinned_from);
}

uint32_t RowTiers::FreshVictim(HotRows& hot, const RowTable& t, int64_t pinned_from) {
  uint32_t looks = static_cast<uint32_t>(std::min<size_t>(kLooks, hot.fresh.size()));
  for (; looks > 0 && hot.fresh.size() > hot.fresh_capacity; --looks) {
    const uint32_t row = hot.fresh.front();
    hot.fresh.pop_front();
    RowTable::Marks& marks = t.MarksOf(row);
    if (marks.use > 1) {
      marks.fresh = false;
    } else if (t.Changed(row) < pinned_from) {
      return row;
    } else {
      hot.fresh.push_back(row);
    }
  }
  return RowTable::kNoRow;
}

uint32_t RowTiers::EstablishedVictim(HotRows& hot, const RowTable& t, int64_t pinned_from) const {
  uint32_t& hand = hot.hand;
  uint32_t best = RowTable::kNoRow;
  for (uint32_t look = 0; look < std::min(kLooks, t.size()); ++look) {
    hand = hand + 1 < t.size() ? hand + 1 : 0;
    RowTable::Marks& marks = t.MarksOf(hand);
    if (marks.fresh || t.Changed(hand) >= pinned_from) continue;
    if (marks.use == 0) return hand;
    marks.use = static_cast<uint8_t>(marks.use / 2) & kMostUse;
    if (best == RowTable::kNoRow || marks.use < t.MarksOf(best).use) best = hand;
  }
  return best;
}

// Whether a row that was used `distance` steps ago is worth more than some established rows. Estimates within how many
// steps nine of ten established rows were used, by looking at one at a time.
bool RowTiers::IsWorthMore(HotRows& hot, const RowTable& t, double distance) const {
  hot.looked_at = hot.looked_at + 1 < t.size() ? hot.looked_at + 1 : 0;
  if (!t.MarksOf(hot.looked_at).fresh) {
    const bool is_older = static_cast<double>(step_ - t.Changed(hot.looked_at)) > hot.oldest;
    hot.oldest += std::max(1.0, hot.oldest) * (is_older ? kOlderShare : kOlderShare - 1) * kSmoothing;
  }
  return distance < hot.oldest;
}

void RowTiers::MakeFresh(HotRows& hot, const RowTable& t, uint32_t row) {
  t.MarksOf(row).fresh = true;
  hot.fresh.push_back(row);
}

void RowTiers::NoteNew(size_t table, const RowTable& t, uint32_t row) {
  HotRows& hot = hot_[table];
  if (t.size() >= hot.capacity) MakeFresh(hot, t, row);
}

void RowTiers::Cool(size_t table, const RowTable& t, uint32_t row) {
  const RowTable::Marks marks = t.MarksOf(row);
  const TableKey key(static_cast<uint32_t>(table), t.Key(row));
  cooled_[StampOf(key.first, key.second)] = ++counts_.cooled;
  if (marks.has_copy) {
    --hot_copies_;
    if (!marks.changed) return;
  } else {
    ++cold_keys_;
  }
  const int64_t changed = t.Changed(row);
  newest_ = std::max(newest_, changed);
  for (const Watch& watch : watches_) {
    if (!marks.has_copy || watch.table != table || changed > watch.last_step) continue;
    if (const auto keys = watch.keys.lock()) keys->insert(key.second);
  }
  const std::span<const float> floats = t.Row(row);
  const auto [found, added] = waiting_at_.try_emplace(key, waiting_.size());
  if (added) {
    waiting_.push_back({key.first, key.second, text_.size(), sizeof changed + floats.size_bytes(), marks.has_copy});
    text_.resize(text_.size() + waiting_.back().size);
  }
  std::byte* const to = text_.data() + waiting_[found->second].at;
  std::memcpy(to, &changed, sizeof changed);
  std::memcpy(to + sizeof changed, floats.data(), floats.size_bytes());
  const size_t most = std::max(kMayWait, static_cast<size_t>(options_.memory_bytes / kWaitingPart));
  const bool enough = waiting_.size() >= kWrittenTogether || text_.size() >= most;
  if (enough && !full_) Write().IgnoreError();  // the log says it
}

absl::Status RowTiers::Write() {
  if (waiting_.empty()) return absl::OkStatus();
  std::vector<ColdRows::Row> rows;
  rows.reserve(waiting_.size());
  for (const Waiting& row : waiting_) rows.push_back({row.table, row.key, WaitingOf(row), row.has_copy});
  const base::SteadyTime start = Now();
  const absl::Status written = cold_->Put(rows);
  CountWait(start, Now());
  if (written.code() == absl::StatusCode::kDataLoss) {  // an earlier row
    Fail(written);
    return written;
  }
  if (!written.ok()) {
    if (!std::exchange(full_, true)) {
      base::log::Warn("no more rows can leave memory, which grows until there is room on the disk",
                      {{"status", base::ToString(written)}});
    }
    return written;
  }
  if (std::exchange(full_, false)) base::log::Info("rows can leave memory again");
  waiting_.clear();
  waiting_at_.clear();
  waiting_at_.reserve(kWrittenTogether);  // clear frees the memory of so many
  text_.clear();
  return absl::OkStatus();
}

absl::Status RowTiers::Flush() { return Write(); }

void RowTiers::NoteStep(int64_t step) {
  step_ = step;
  if (full_ && ++retries_ % kRetryEach == 0) Write().IgnoreError();  // the log says it
}

void RowTiers::Fail(const absl::Status& status) {
  if (!status_.ok()) return;
  // The rows are in a checkpoint and in pushes that trainers keep, so this process can be replaced.
  status_ = base::Unavailable("{}; this process ends, and its rows are rebuilt", base::Message(status));
  if (options_.failed) options_.failed(status_);
}

bool RowTiers::Find(size_t table, uint64_t key, std::vector<std::byte>& bytes) {
  if (!MayHave() || !status_.ok()) return false;
  const auto number = static_cast<uint32_t>(table);
  const auto waits = waiting_at_.find(TableKey(number, key));
  if (waits != waiting_at_.end()) {
    const Bytes copy = WaitingOf(waiting_[waits->second]);
    bytes.assign(copy.begin(), copy.end());
    return true;
  }
  ColdRows::Copies copies;
  NoteRead(cold_->Get(number, {&key, 1}, copies));
  if (!copies.Has(0)) return false;
  bytes.assign(copies.Of(0).begin(), copies.Of(0).end());
  return true;
}

void RowTiers::Warm(size_t table, RowTable& t, uint32_t row, Bytes bytes, bool ahead) {
  HotRows& hot = hot_[table];
  const int64_t changed = ChangedAt(bytes);
  FloatsOf(bytes, t.Row(row));
  t.SetChanged(row, changed);
  t.MarksOf(row) = {.use = static_cast<uint8_t>(ahead ? 0 : 1), .has_copy = true, .changed = false};
  if (!IsWorthMore(hot, t, static_cast<double>(step_ - changed))) MakeFresh(hot, t, row);
  ++hot_copies_;
  ++counts_.loads;
  counts_.ahead += ahead ? 1 : 0;
}

RowTiers::Moment RowTiers::TakeMoment() {
  if (!full_) Write().IgnoreError();  // the log says it
  Moment moment{.view = cold_->TakeView(), .waiting = {}, .newest = newest_};
  for (const Waiting& row : waiting_) {
    const Bytes bytes = WaitingOf(row);
    moment.waiting.emplace(TableKey(row.table, row.key), std::vector<std::byte>(bytes.begin(), bytes.end()));
  }
  return moment;
}

std::shared_ptr<const absl::flat_hash_set<uint64_t>> RowTiers::WatchOldCopies(size_t table, int64_t step) {
  std::erase_if(watches_, [](const Watch& watch) { return watch.keys.expired(); });
  auto keys = std::make_shared<absl::flat_hash_set<uint64_t>>();
  // A row that a step has changed which was undone is changed at the step after.
  watches_.push_back({table, step + 1, keys});
  return keys;
}

RowTierCounts RowTiers::counts() const {
  RowTierCounts counts = counts_;
  counts.cold = ColdRowCount();
  counts.disk_bytes = cold_->DiskBytes();
  return counts;
}

int64_t RowTiers::ChangedAt(Bytes bytes) {
  int64_t changed = 0;
  std::memcpy(&changed, bytes.data(), sizeof changed);
  return changed;
}

void RowTiers::FloatsOf(Bytes bytes, std::span<float> floats) {
  std::memcpy(floats.data(), bytes.data() + sizeof(int64_t), floats.size_bytes());
}

}  // namespace medley::worker
