#include "worker/ps/row_tiers.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <tuple>

#include "common/base/log.h"
#include "common/base/status.h"

namespace medley::worker {
namespace {

constexpr size_t kWrittenTogether = 512;
constexpr uint32_t kLooks = 4096;   // of the hand, for one row
constexpr int64_t kRetryEach = 64;  // steps
constexpr int64_t kColdPart = 8;    // of the budget is for what finds cold rows
constexpr int64_t kLeastRows = 64;  // of a table that are hot

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
  double all = 0;
  for (const RowTable& t : tables) {
    needs.push_back(static_cast<double>(t.spec().rows) * static_cast<double>(t.BytesPerRow()));
    all += needs.back();
  }
  if (all <= static_cast<double>(options.memory_bytes)) return nullptr;
  const int64_t cold_bytes = std::max(ColdRows::kLeastMemory, options.memory_bytes / kColdPart);
  MEDLEY_ASSIGN_OR_RETURN(
      std::unique_ptr<ColdRows> cold,
      ColdRows::Open({.folder = options.folder, .memory_bytes = cold_bytes, .most_bytes = options.most_disk_bytes}));
  std::unique_ptr<RowTiers> tiers(new RowTiers(options, std::move(cold)));
  const std::vector<double> shares =
      Divide(static_cast<double>(std::max<int64_t>(0, options.memory_bytes - cold_bytes)), needs);
  for (size_t i = 0; i < tables.size(); ++i) {
    const double rows = shares[i] / static_cast<double>(tables[i].BytesPerRow());
    tiers->capacity_.push_back(static_cast<uint32_t>(
        std::clamp(rows, static_cast<double>(kLeastRows), static_cast<double>(RowTable::kMaxRows))));
  }
  tiers->hands_.resize(tables.size());
  return tiers;
}

uint32_t RowTiers::FindVictim(size_t table, const RowTable& t, int64_t pinned_from) {
  if (t.size() < capacity_[table] || full_) return RowTable::kNoRow;
  uint32_t& hand = hands_[table];
  uint32_t best = RowTable::kNoRow;
  for (uint32_t look = 0; look < std::min(kLooks, t.size()); ++look) {
    hand = hand + 1 < t.size() ? hand + 1 : 0;
    if (t.Changed(hand) >= pinned_from) continue;
    RowTable::Marks& marks = t.MarksOf(hand);
    if (marks.use == 0) return hand;
    marks.use = static_cast<uint8_t>(marks.use / 2) & kMostUse;
    if (best == RowTable::kNoRow || marks.use < t.MarksOf(best).use) best = hand;
  }
  return best;
}

void RowTiers::Cool(size_t table, const RowTable& t, uint32_t row) {
  const RowTable::Marks marks = t.MarksOf(row);
  const TableKey key(static_cast<uint32_t>(table), t.Key(row));
  for (auto& cooled : cooled_) cooled.insert(key);
  if (marks.has_copy) {
    --hot_copies_;
    if (!marks.changed) return;
  } else {
    ++cold_keys_;
  }
  const int64_t changed = t.Changed(row);
  newest_ = std::max(newest_, changed);
  const std::span<const float> floats = t.Row(row);
  const auto [found, added] = waiting_at_.try_emplace(key, waiting_.size());
  if (added) {
    waiting_.push_back({key.first, key.second, text_.size(), sizeof changed + floats.size_bytes()});
    text_.resize(text_.size() + waiting_.back().size);
  }
  std::byte* const to = text_.data() + waiting_[found->second].at;
  std::memcpy(to, &changed, sizeof changed);
  std::memcpy(to + sizeof changed, floats.data(), floats.size_bytes());
  if (waiting_.size() >= kWrittenTogether && !full_) Write();
}

void RowTiers::Write() {
  if (waiting_.empty()) return;
  std::vector<ColdRows::Row> rows;
  rows.reserve(waiting_.size());
  for (const Waiting& row : waiting_) rows.push_back({row.table, row.key, WaitingOf(row)});
  std::ranges::sort(rows,
                    [](const auto& a, const auto& b) { return std::tie(a.table, a.key) < std::tie(b.table, b.key); });
  const absl::Status written = cold_->Put(rows);
  if (written.code() == absl::StatusCode::kDataLoss) return Fail(written);  // found while files were merged
  if (!written.ok()) {
    if (!std::exchange(full_, true)) {
      base::log::Warn("no more rows can leave memory, which grows until there is room on the disk",
                      {{"status", base::ToString(written)}});
    }
    return;
  }
  if (std::exchange(full_, false)) base::log::Info("rows can leave memory again");
  waiting_.clear();
  waiting_at_.clear();
  text_.clear();
}

absl::Status RowTiers::Flush() {
  Write();
  return cold_->Flush();
}

void RowTiers::Retry() {
  if (full_ && ++retries_ % kRetryEach == 0) Write();
}

void RowTiers::Fail(const absl::Status& status) {
  if (!status_.ok()) return;
  // The rows are in a checkpoint and in pushes that trainers keep, so this process can be replaced.
  status_ = base::Unavailable("{}; this process ends, and its rows are rebuilt", base::Message(status));
  if (options_.failed) options_.failed(status_);
}

bool RowTiers::Find(size_t table, uint64_t key, std::vector<std::byte>& bytes) {
  bool there = false;
  FindAll(table, {&key, 1}, [&](size_t, Bytes found) {
    bytes.assign(found.begin(), found.end());
    there = true;
  });
  return there;
}

void RowTiers::FindAll(size_t table, std::span<const uint64_t> keys, absl::FunctionRef<void(size_t, Bytes)> found) {
  if (!MayHave() || !status_.ok()) return;
  const auto number = static_cast<uint32_t>(table);
  std::vector<uint64_t> others;
  std::vector<size_t> places;
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto waits = waiting_at_.find(TableKey(number, keys[i]));
    if (waits == waiting_at_.end()) {
      others.push_back(keys[i]);
      places.push_back(i);
      continue;
    }
    // A copy, because `found` may cool other rows.
    const Bytes bytes = WaitingOf(waiting_[waits->second]);
    found(i, std::vector<std::byte>(bytes.begin(), bytes.end()));
  }
  const absl::Status read =
      cold_->Get(number, others, [&](size_t i, std::span<const std::byte> bytes) { found(places[i], bytes); });
  if (!read.ok()) Fail(read);
}

void RowTiers::Warm(RowTable& t, uint32_t row, Bytes bytes, bool ahead) {
  FloatsOf(bytes, t.Row(row));
  t.SetChanged(row, ChangedAt(bytes));
  t.MarksOf(row) = {.use = 1, .has_copy = true, .changed = false};
  ++hot_copies_;
  ++counts_.loads;
  counts_.ahead += ahead ? 1 : 0;
}

bool RowTiers::WasCooled(size_t table, uint64_t key) const {
  return std::ranges::any_of(
      cooled_, [&](const auto& cooled) { return cooled.contains(TableKey(static_cast<uint32_t>(table), key)); });
}

RowTiers::Moment RowTiers::TakeMoment() {
  if (!full_) Write();
  Moment moment{.view = cold_->TakeView(), .waiting = {}, .newest = newest_};
  for (const Waiting& row : waiting_) {
    const Bytes bytes = WaitingOf(row);
    moment.waiting.emplace(TableKey(row.table, row.key), std::vector<std::byte>(bytes.begin(), bytes.end()));
  }
  return moment;
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
