// The rows of a RowStore that are on the disk.
#include "worker/ps/row_store.h"

namespace medley::worker {

uint32_t RowStore::Place(size_t table, uint64_t key, RowTable::FirstValues values) {
  RowTable& t = tables_[table];
  const uint32_t row = tiers_->FindVictim(table, t, pinned_from_);
  if (row == RowTable::kNoRow) return t.Create(key, values);
  LeaveSnapshot(table, row);
  // A row that is of no use at any step that an undo can reach needs no copy. An older copy is of no use either.
  const bool expired = optimizer_.lifetime.Counts() && t.Use(row).sightings > 0 && !IsKnown(t.Row(row), undo_limit_);
  if (expired) tiers_->Drop(t, row);
  if (!expired) tiers_->Cool(table, t, row);
  t.Replace(row, key, values);
  return row;
}

uint32_t RowStore::NewRow(size_t table, uint64_t key) {
  if (tiers_ == nullptr) return tables_[table].Create(key);
  const uint32_t row = Place(table, key, RowTable::FirstValues::kInitial);
  tiers_->NoteNew(table, tables_[table], row);
  return row;
}

uint32_t RowStore::MakeHot(size_t table, uint64_t key, std::span<const std::byte> bytes, bool ahead) {
  const uint32_t row = Place(table, key, RowTable::FirstValues::kAny);
  tiers_->Warm(table, tables_[table], row, bytes, ahead);
  return row;
}

uint32_t RowStore::Locate(size_t table, uint64_t key) {
  if (tiers_ == nullptr || !tiers_->MayHave()) return RowTable::kNoRow;
  std::vector<std::byte> bytes;
  return tiers_->Find(table, key, bytes) ? MakeHot(table, key, bytes, /*ahead=*/false) : RowTable::kNoRow;
}

absl::Status RowStore::ReadCold(size_t table, std::span<const uint64_t> keys, std::span<const size_t> places,
                                std::span<float> out) {
  std::vector<uint64_t> missing, read;
  std::vector<size_t> at(places.size(), ColdRows::Copies::kNone);  // in `read`
  missing.reserve(places.size());
  read.reserve(places.size());
  int64_t began = 0;
  {
    base::MutexLock lock(mutex_);
    MEDLEY_RETURN_IF_ERROR(tiers_->status());
    for (const size_t place : places) {
      missing.push_back(keys[place]);
      if (tiers_->Waits(table, missing.back())) continue;
      at[missing.size() - 1] = read.size();
      read.push_back(missing.back());
    }
    began = tiers_->Cools();
  }
  ColdRows::Copies copies;
  const base::SteadyTime start = tiers_->Now();
  const absl::Status status = tiers_->cold().Get(static_cast<uint32_t>(table), read, copies);
  const base::SteadyTime end = tiers_->Now();
  base::MutexLock lock(mutex_);
  tiers_->CountWait(start, end);
  tiers_->NoteRead(status);
  const RowTable& t = tables_[table];
  const size_t columns = t.columns();
  int64_t found = 0;
  t.ForEach(missing, columns, [&](size_t i, uint32_t row) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    const uint64_t key = missing[i];
    if (row != RowTable::kNoRow) {
      tiers_->Use(t, row);  // it has become hot meanwhile
    } else {
      const bool is_read = at[i] != ColdRows::Copies::kNone && !tiers_->MayHaveCooled(began, table, key);
      if (!is_read) {
        row = Locate(table, key);
      } else if (copies.Has(at[i])) {
        row = MakeHot(table, key, copies.Of(at[i]), /*ahead=*/false);
      }
    }
    found += row != RowTable::kNoRow ? 1 : 0;
    CopyWeights(t, key, row, out.subspan(places[i] * columns, columns));
  });
  tiers_->CountUses(found);
  return tiers_->status();
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
  int64_t began = 0;
  {
    base::MutexLock lock(mutex_);
    const RowTable* t = Find(table);
    if (t == nullptr || !tiers_->MayHave() || !tiers_->status().ok()) return;
    number = static_cast<size_t>(t - tables_.data());
    t->ForEach(keys, 0, [&](size_t k, uint32_t row) ABSL_NO_THREAD_SAFETY_ANALYSIS {
      if (row == RowTable::kNoRow && !tiers_->Waits(number, keys[k])) cold.push_back(keys[k]);
    });
    if (cold.empty()) return;
    began = tiers_->Cools();
  }
  ColdRows::Copies copies;
  tiers_->cold().Get(static_cast<uint32_t>(number), cold, copies).IgnoreError();
  base::MutexLock lock(mutex_);
  const RowTable& t = tables_[number];
  t.ForEach(cold, 0, [&](size_t i, uint32_t row) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (row != RowTable::kNoRow || !copies.Has(i) || tiers_->MayHaveCooled(began, number, cold[i])) return;
    MakeHot(number, cold[i], copies.Of(i), /*ahead=*/true);
  });
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
  for (const RowTable& t : tables_) {
    counts.hot += t.size();
    counts.memory_bytes += static_cast<int64_t>(t.size() * t.BytesPerRow());
  }
  return counts;
}

}  // namespace medley::worker
