// The rows of a RowStore that are on the disk.
#include <algorithm>
#include <cstring>

#include "worker/ps/row_store.h"

namespace medley::worker {

uint32_t RowStore::NewRow(size_t table, uint64_t key) {
  RowTable& t = tables_[table];
  if (tiers_ == nullptr) return t.Create(key);
  const uint32_t row = tiers_->FindVictim(table, t, pinned_from_);
  if (row == RowTable::kNoRow) return t.Create(key);
  LeaveSnapshot(table, row);
  // A row that is of no use at any step that an undo can reach needs no copy. An older copy is of no use either.
  const bool expired = optimizer_.lifetime.Counts() && t.Use(row).sightings > 0 && !IsKnown(t.Row(row), undo_limit_);
  if (expired) tiers_->Drop(t, row);
  if (!expired) tiers_->Cool(table, t, row);
  t.Replace(row, key);
  return row;
}

uint32_t RowStore::MakeHot(size_t table, uint64_t key, std::span<const std::byte> bytes, bool ahead) {
  const uint32_t row = NewRow(table, key);
  tiers_->Warm(tables_[table], row, bytes, ahead);
  return row;
}

uint32_t RowStore::Locate(size_t table, uint64_t key) {
  if (tiers_ == nullptr || !tiers_->MayHave()) return RowTable::kNoRow;
  std::vector<std::byte> bytes;
  return tiers_->Find(table, key, bytes) ? MakeHot(table, key, bytes, /*ahead=*/false) : RowTable::kNoRow;
}

absl::Status RowStore::ReadCold(const RowTable& t, std::span<const uint64_t> keys, std::span<const size_t> places,
                                std::span<float> out) {
  if (places.empty()) return tiers_->status();
  const auto table = static_cast<size_t>(&t - tables_.data());
  const size_t columns = t.columns();
  std::vector<uint64_t> missing;
  for (const size_t k : places) missing.push_back(keys[k]);
  std::vector<bool> found(places.size());
  tiers_->FindAll(table, missing, [&](size_t i, RowTiers::Bytes bytes) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    uint32_t row = t.Find(missing[i]);  // a key may be named twice
    if (row == RowTable::kNoRow) row = MakeHot(table, missing[i], bytes, /*ahead=*/false);
    CopyWeights(t, missing[i], row, out.subspan(places[i] * columns, columns));
    found[i] = true;
  });
  MEDLEY_RETURN_IF_ERROR(tiers_->status());
  tiers_->CountUses(std::ranges::count(found, true));
  for (size_t i = 0; i < places.size(); ++i) {
    if (!found[i]) t.Initial(missing[i], out.subspan(places[i] * columns, columns));
  }
  return absl::OkStatus();
}

void RowStore::Expect(int table, std::vector<uint64_t> keys) {
  if (fetch_ahead_ != nullptr) fetch_ahead_->Add(table, std::move(keys));
}

void RowStore::AwaitExpected() {
  if (fetch_ahead_ != nullptr) fetch_ahead_->Await();
}

// A damaged row is left to the pull that needs it.
void RowStore::Load(int table, std::span<const uint64_t> keys) {
  size_t number = 0;
  std::vector<uint64_t> cold;
  {
    base::MutexLock lock(mutex_);
    const RowTable* t = Find(table);
    if (t == nullptr || !tiers_->MayHave() || !tiers_->status().ok()) return;
    number = static_cast<size_t>(t - tables_.data());
    t->ForEach(keys, 0, [&](size_t k, uint32_t row) ABSL_NO_THREAD_SAFETY_ANALYSIS {
      if (row == RowTable::kNoRow && !tiers_->Waits(number, keys[k])) cold.push_back(keys[k]);
    });
    if (cold.empty()) return;
    tiers_->BeginReading();
  }
  std::vector<std::pair<size_t, std::vector<std::byte>>> read;
  const absl::Status status = tiers_->cold().Get(static_cast<uint32_t>(number), cold, [&](size_t i, RowTiers::Bytes b) {
    read.emplace_back(i, std::vector<std::byte>(b.begin(), b.end()));
  });
  base::MutexLock lock(mutex_);
  for (const auto& [i, bytes] : read) {
    if (tables_[number].Find(cold[i]) != RowTable::kNoRow || tiers_->WasCooled(number, cold[i])) continue;
    MakeHot(number, cold[i], bytes, /*ahead=*/true);
  }
  tiers_->EndReading();
}

void RowStore::LeaveSnapshot(size_t table, uint32_t row) {
  if (snapshot_ == nullptr) return;
  RowSnapshot::Table& s = snapshot_->tables_[table];
  if (row >= s.rows) return;
  if (s.left.empty()) s.left.resize(s.rows);
  if (s.left[row]) return;
  SaveForSnapshot(table, row);
  s.left[row] = true;
  const uint64_t key = tables_[table].Key(row);
  s.left_keys.insert(key);
  if (row >= s.read) s.key_of.emplace(row, key);
}

// Its row is then a part of the snapshot, and the copy on the disk is not.
bool RowStore::WasHot(const RowSnapshot& snapshot, size_t table, uint64_t key) const {
  const RowSnapshot::Table& s = snapshot.tables_[table];
  const uint32_t row = tables_[table].Find(key);
  if (row != RowTable::kNoRow && row < s.rows && (s.left.empty() || !s.left[row])) return true;
  return s.left_keys.contains(key);
}

absl::Status RowStore::FlushTiers() {
  base::MutexLock lock(mutex_);
  return tiers_->Flush();
}

std::optional<RowTierCounts> RowStore::TierCounts() const {
  if (tiers_ == nullptr) return std::nullopt;
  base::MutexLock lock(mutex_);
  RowTierCounts counts = tiers_->counts();
  for (const RowTable& t : tables_) counts.hot += t.size();
  return counts;
}

}  // namespace medley::worker
