// Exports of the rows of a RowStore: to another shard, and of a moment for a checkpoint.
#include <algorithm>
#include <utility>

#include "common/base/status.h"
#include "worker/ps/cold_scan.h"
#include "worker/ps/row_store.h"

namespace medley::worker {
namespace {
constexpr size_t kPieceFloats = (size_t{1} << 20) / sizeof(float) - 4096;
constexpr size_t kKeyFloats = sizeof(uint64_t) / sizeof(float);
constexpr uint32_t kRowsPerLock = 65536;  // most rows that an export looks at while updates and pulls wait
constexpr uint32_t kColdRowsPerLock = 1024;
}  // namespace

// An earlier copy may have a row that an undo has emptied since, so it must be emptied there too.
bool RowStore::IsExported(size_t table, std::span<const float> row, int64_t changed, int64_t since_step) const {
  if (since_step > 0) return changed > since_step;
  if (IsKnown(row, step_ + 1)) return true;
  return table < row_tables_ && UseOf(row.last<kUseFloats>()).sightings == 0 && changed > 0;
}

absl::Status RowStore::Export(int64_t since_step, absl::FunctionRef<bool(int, uint64_t)> wanted,
                              absl::FunctionRef<absl::Status(const RowPiece&)> sink) const {
  for (size_t table = 0;; ++table) {
    for (uint32_t next = 0;;) {
      RowPiece piece;
      bool more = false;
      {
        base::MutexLock lock(mutex_);
        piece.at_step = step_;
        piece.state_samples = samples_;
        if (table < tables_.size()) {
          const RowTable& t = tables_[table];
          piece.table = t.spec().operation;
          const size_t end = std::min<size_t>(t.size(), size_t{next} + kRowsPerLock);
          for (; next < end && piece.values.size() + kKeyFloats * piece.keys.size() < kPieceFloats; ++next) {
            const auto row = t.Row(next);
            if (!IsExported(table, row, t.Changed(next), since_step)) continue;
            if (!wanted(piece.table, t.Key(next))) continue;
            piece.keys.push_back(t.Key(next));
            piece.values.insert(piece.values.end(), row.begin(), row.end());
          }
          more = next < t.size();
        }
      }
      const bool end = table >= tables_.size();
      if (end || !piece.keys.empty()) MEDLEY_RETURN_IF_ERROR(sink(piece));
      if (end) return absl::OkStatus();
      if (!more) break;
    }
    MEDLEY_RETURN_IF_ERROR(ExportCold(table, since_step, wanted, sink));
  }
}

// Rows that become hot while the hot ones are exported may be missed there, and all have copies. So this follows: it
// exports the rows that are cold now, and in place of an old copy the hot row, or the newer copy if it has become cold
// meanwhile.
absl::Status RowStore::ExportCold(size_t table, int64_t since_step, absl::FunctionRef<bool(int, uint64_t)> wanted,
                                  absl::FunctionRef<absl::Status(const RowPiece&)> sink) const {
  if (tiers_ == nullptr) return absl::OkStatus();
  RowPiece first;
  RowTiers::Moment moment;
  std::shared_ptr<const absl::flat_hash_set<uint64_t>> old_copies;
  std::vector<float> row;
  {
    base::MutexLock lock(mutex_);
    MEDLEY_RETURN_IF_ERROR(tiers_->status());
    if (table >= tables_.size() || !tiers_->MayHave()) return absl::OkStatus();
    row.resize(tables_[table].stride());
    moment = tiers_->TakeMoment();
    old_copies = tiers_->WatchOldCopies(table, step_);
    first = {.table = tables_[table].spec().operation,
             .keys = {},
             .values = {},
             .at_step = step_,
             .state_samples = samples_};
  }
  RowPiece piece = first;
  ColdScan scan(moment, table);
  uint64_t key = 0;
  RowTiers::Bytes bytes;
  std::vector<std::byte> newer;
  for (bool more = true; more;) {
    {
      base::MutexLock lock(mutex_);
      const RowTable& t = tables_[table];
      for (uint32_t n = 0; n < kColdRowsPerLock && piece.values.size() + kKeyFloats * piece.keys.size() < kPieceFloats;
           ++n) {
        more = scan.Next(key, bytes);
        if (!more) break;
        const uint32_t hot = t.Find(key);
        if (hot == RowTable::kNoRow && old_copies->contains(key)) {
          const bool is_found = tiers_->Find(table, key, newer);
          MEDLEY_RETURN_IF_ERROR(tiers_->status());
          if (is_found) bytes = newer;
        }
        if (hot == RowTable::kNoRow) RowTiers::FloatsOf(bytes, row);
        if (hot != RowTable::kNoRow) std::ranges::copy(t.Row(hot), row.begin());
        const int64_t changed = hot == RowTable::kNoRow ? RowTiers::ChangedAt(bytes) : t.Changed(hot);
        if (!IsExported(table, row, changed, since_step) || !wanted(piece.table, key)) continue;
        piece.keys.push_back(key);
        piece.values.insert(piece.values.end(), row.begin(), row.end());
      }
    }
    if (more && piece.values.size() + kKeyFloats * piece.keys.size() < kPieceFloats) continue;
    if (!piece.keys.empty()) MEDLEY_RETURN_IF_ERROR(sink(piece));
    piece = first;
  }
  if (scan.status().ok()) return absl::OkStatus();
  base::MutexLock lock(mutex_);
  tiers_->NoteScan(scan.status());
  return scan.status();
}

std::shared_ptr<RowSnapshot> RowStore::TakeSnapshot() {
  auto snapshot = std::make_shared<RowSnapshot>();
  std::vector<RowSnapshot::Table> freed;  // without the lock
  std::shared_ptr<const RowTiers::Moment> freed_cold;
  base::MutexLock lock(mutex_);
  if (snapshot_ != nullptr) {
    freed.swap(snapshot_->tables_);
    freed_cold.swap(snapshot_->cold_);
  }
  snapshot->step_ = step_;
  snapshot->state_samples_ = samples_;
  for (const RowTable& t : tables_) {
    snapshot->tables_.push_back({.rows = t.size(), .read = 0, .saved = SavedRows(t.size(), t.stride())});
  }
  if (tiers_ != nullptr && tiers_->MayHave()) {
    snapshot->cold_ = std::make_shared<const RowTiers::Moment>(tiers_->TakeMoment());
  }
  snapshot_ = snapshot;
  return snapshot;
}

void RowStore::EndSnapshot(RowSnapshot& snapshot) {
  std::vector<RowSnapshot::Table> freed;  // without the lock
  std::shared_ptr<const RowTiers::Moment> freed_cold;
  base::MutexLock lock(mutex_);
  if (snapshot_.get() != &snapshot) return;
  freed.swap(snapshot.tables_);
  freed_cold.swap(snapshot.cold_);
  snapshot_.reset();
}

void RowStore::SaveForSnapshot(size_t table, uint32_t row) {
  if (snapshot_ == nullptr) return;
  RowSnapshot::Table& t = snapshot_->tables_[table];
  if (row < t.read || row >= t.rows || t.saved.Contains(row)) return;
  t.saved.Add(row, tables_[table].Row(row));
}

absl::Status RowStore::ExportSnapshot(RowSnapshot& snapshot, absl::FunctionRef<absl::Status(const RowPiece&)> sink) {
  const bool counts = optimizer_.lifetime.Counts();
  const size_t tables = [this] {
    base::MutexLock lock(mutex_);
    return tables_.size();
  }();
  for (size_t table = 0; table < tables; ++table) {
    for (bool more = true; more;) {
      RowPiece piece{.at_step = snapshot.step(), .state_samples = snapshot.state_samples()};
      piece.values.reserve(kPieceFloats);
      {
        base::MutexLock lock(mutex_);
        if (snapshot_.get() != &snapshot) return base::Aborted("the snapshot of step {} was ended", snapshot.step());
        const RowTable& t = std::as_const(tables_)[table];
        RowSnapshot::Table& s = snapshot.tables_[table];
        piece.table = t.spec().operation;
        const uint32_t end = s.read + std::min(s.rows - s.read, kRowsPerLock);
        for (; s.read < end && piece.values.size() < kPieceFloats; ++s.read) {
          const auto row = s.saved.Contains(s.read) ? s.saved.Row(s.read) : t.Row(s.read);
          if (counts && !optimizer_.lifetime.IsKnown(UseOf(row.last<kUseFloats>()), snapshot.step() + 1)) continue;
          const auto left = s.key_of.find(s.read);
          piece.keys.push_back(left == s.key_of.end() ? t.Key(s.read) : left->second);
          piece.values.insert(piece.values.end(), row.begin(), row.end());
        }
        more = s.read < s.rows;
      }
      if (!piece.keys.empty()) MEDLEY_RETURN_IF_ERROR(sink(piece));
    }
    MEDLEY_RETURN_IF_ERROR(ExportColdOf(snapshot, table, sink));
  }
  return absl::OkStatus();
}

absl::Status RowStore::ExportColdOf(const RowSnapshot& snapshot, size_t table,
                                    absl::FunctionRef<absl::Status(const RowPiece&)> sink) {
  RowPiece first{.at_step = snapshot.step(), .state_samples = snapshot.state_samples()};
  std::shared_ptr<const RowTiers::Moment> cold;
  std::vector<float> row;
  {
    base::MutexLock lock(mutex_);
    if (snapshot_.get() != &snapshot) return base::Aborted("the snapshot of step {} was ended", snapshot.step());
    cold = snapshot.cold_;
    if (cold == nullptr) return absl::OkStatus();
    first.table = tables_[table].spec().operation;
    row.resize(tables_[table].stride());
  }
  RowPiece piece = first;
  ColdScan scan(*cold, table);
  uint64_t key = 0;
  RowTiers::Bytes bytes;
  for (bool more = true; more;) {
    {
      base::MutexLock lock(mutex_);
      if (snapshot_.get() != &snapshot) return base::Aborted("the snapshot of step {} was ended", snapshot.step());
      for (uint32_t n = 0; n < kColdRowsPerLock && piece.values.size() < kPieceFloats; ++n) {
        more = scan.Next(key, bytes);
        if (!more) break;
        if (WasHot(snapshot, table, key)) continue;
        RowTiers::FloatsOf(bytes, row);
        if (!IsKnown(row, snapshot.step() + 1)) continue;
        piece.keys.push_back(key);
        piece.values.insert(piece.values.end(), row.begin(), row.end());
      }
    }
    if (more && piece.values.size() < kPieceFloats) continue;
    if (!piece.keys.empty()) MEDLEY_RETURN_IF_ERROR(sink(piece));
    piece = first;
  }
  if (scan.status().ok()) return absl::OkStatus();
  base::MutexLock lock(mutex_);
  tiers_->NoteScan(scan.status());
  return scan.status();
}

}  // namespace medley::worker
