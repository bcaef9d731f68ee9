#include "worker/ps/row_store.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/status.h"
#include "worker/params/row_update.h"

namespace medley::worker {
namespace {
constexpr size_t kPieceFloats = (size_t{1} << 20) / sizeof(float) - 4096;
constexpr size_t kKeyFloats = sizeof(uint64_t) / sizeof(float);
constexpr uint32_t kRowsPerLock = 65536;  // most rows that an export looks at while updates and pulls wait

bool Ascends(std::span<const uint64_t> keys) {
  for (size_t k = 1; k < keys.size(); ++k) {
    if (keys[k - 1] >= keys[k]) return false;
  }
  return true;
}

absl::Status CheckKeys(const ParameterSpec& spec, std::span<const uint64_t> keys) {
  uint64_t most = 0;
  for (const uint64_t key : keys) most = std::max(most, key);
  if (keys.empty() || most < static_cast<uint64_t>(spec.rows)) return absl::OkStatus();
  return base::InvalidArgument("row {} does not exist, table {} has {} rows", most, spec.operation, spec.rows);
}

}  // namespace

RowStore::RowStore(std::vector<ParameterSpec> tables, const Optimizer& optimizer, uint64_t seed)
    : optimizer_(optimizer), row_tables_(tables.size()) {
  for (const ParameterSpec& spec : tables) tables_.emplace_back(spec, optimizer, seed);
  if (optimizer.lifetime.admit_after > 1) {
    for (ParameterSpec& spec : tables) {
      spec.columns = 0;
      tables_.emplace_back(std::move(spec), optimizer, seed);
    }
  }
  for (const RowTable& t : tables_) undo_.emplace_back(t.stride());
}

bool RowStore::IsKnown(const RowTable& t, uint32_t row, int64_t step) const {
  return !optimizer_.lifetime.Counts() || optimizer_.lifetime.IsKnown(t.Use(row), step);
}

const RowTable* RowStore::Find(int table) const {
  for (const RowTable& t : tables_) {
    if (t.spec().operation == table) return &t;
  }
  return nullptr;
}

RowTable* RowStore::Find(int table) { return const_cast<RowTable*>(std::as_const(*this).Find(table)); }

absl::StatusOr<size_t> RowStore::ReadFloats(int table, size_t keys) const {
  base::MutexLock lock(mutex_);
  const RowTable* t = Find(table);
  if (t == nullptr) return base::NotFound("this shard has no table {}", table);
  return keys * t->columns();
}

absl::Status RowStore::Read(int table, std::span<const uint64_t> keys, std::span<float> out) const {
  base::MutexLock lock(mutex_);
  const RowTable* t = Find(table);
  if (t == nullptr) return base::NotFound("this shard has no table {}", table);
  const size_t columns = t->columns();
  if (out.size() != keys.size() * columns) {
    return base::InvalidArgument("table {}: {} floats do not hold {} rows of {} columns", table, out.size(),
                                 keys.size(), columns);
  }
  MEDLEY_RETURN_IF_ERROR(CheckKeys(t->spec(), keys));
  const size_t floats = optimizer_.lifetime.Counts() ? t->stride() : columns;
  t->ForEach(keys, floats, [&](size_t k, uint32_t row) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    const std::span<float> to = out.subspan(k * columns, columns);
    if (row == RowTable::kNoRow || !IsKnown(*t, row, step_ + 1)) return t->Initial(keys[k], to);
    std::memcpy(to.data(), t->Row(row).data(), to.size_bytes());
  });
  return absl::OkStatus();
}

absl::Status RowStore::WaitApplied(int64_t step, const WaitLimit& limit) {
  base::MutexLock lock(mutex_);
  const auto there = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return step_ >= step; };
  if (applied_.WaitUntil(mutex_, limit.stop, limit.deadline, there)) return absl::OkStatus();
  if (limit.stop.stop_requested()) return base::Cancelled("the wait for step {} was stopped", step);
  return base::DeadlineExceeded("step {} was not applied in time, the shard has applied step {}", step, step_);
}

absl::Status RowStore::Check(const GradientView& view) {
  const RowTable* t = Find(view.table);
  if (t == nullptr)
    return base::InvalidArgument("got gradients for table {}, which this shard does not have", view.table);
  if (view.gradients.size() != view.keys.size() * t->columns()) {
    return base::InvalidArgument("table {}: got {} gradient values for {} keys of {} columns", view.table,
                                 view.gradients.size(), view.keys.size(), t->columns());
  }
  return CheckKeys(t->spec(), view.keys);
}

absl::Status RowStore::Apply(int64_t step, std::span<const GradientView> gradients, int64_t samples) {
  base::MutexLock lock(mutex_);
  if (step != step_ + 1)
    return base::FailedPrecondition("update {} does not follow step {}, which the shard has applied", step, step_);
  for (const GradientView& view : gradients) MEDLEY_RETURN_IF_ERROR(Check(view));
  DropUndo();
  undo_samples_ = samples_;
  for (size_t table = 0; table < row_tables_; ++table) ApplyTable(table, gradients, step);
  undo_limit_ = keeps_undo_ ? step_ : step;
  step_ = step;
  samples_ += samples;
  applied_.NotifyAll();
  return absl::OkStatus();
}

void RowStore::ApplyTable(size_t table, std::span<const GradientView> gradients, int64_t step) {
  RowTable& t = tables_[table];
  const size_t columns = t.columns();
  std::vector<GradientView> views;
  for (const GradientView& view : gradients) {
    if (view.table == t.spec().operation && !view.keys.empty()) views.push_back(view);
  }
  if (views.empty()) return;
  if (views.size() > 1 || !Ascends(views[0].keys)) {
    sums_.Clear(columns);
    for (const GradientView& view : views) sums_.Add(view.keys, view.gradients);
    views = {{t.spec().operation, sums_.keys(), sums_.values()}};
  }
  if (optimizer_.lifetime.Counts()) return ApplyCounted(table, views[0], step);
  const std::span<const uint64_t> keys = views[0].keys;
  const RowUpdate update(optimizer_.ForRows().AtStep(step), columns);
  ReplacedRows* const undo = keeps_undo_ ? &undo_[table] : nullptr;
  if (undo != nullptr) undo->Reserve(keys.size());
  t.ForEach(keys, t.stride(), [&](size_t k, uint32_t found) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    const uint32_t row = found == RowTable::kNoRow ? t.Create(keys[k]) : found;
    const std::span<float> values = t.Row(row);
    SaveForSnapshot(table, row);
    if (undo != nullptr) undo->Add(row, values);
    update(values.data(), views[0].gradients.data() + k * columns);
    t.SetChanged(row, step);
  });
}

void RowStore::KeepForUndo(size_t table, uint32_t row) {
  SaveForSnapshot(table, row);
  if (keeps_undo_) undo_[table].Add(row, tables_[table].Row(row));
}

// A row that was of no use at the step to which an undo may return is of no use to it. What changed in this step, an
// export since an earlier one may still need. Rows without sightings are those that an undo has emptied: an export must
// say so.
uint32_t RowStore::CreateRow(size_t table, uint64_t key, int64_t step) {
  RowTable& t = tables_[table];
  if (snapshot_ != nullptr) return t.Create(key);  // it needs the keys
  return t.CreateIn(key, [&](uint32_t row) {
    const RowUse use = t.Use(row);
    const bool admitted = table >= row_tables_ && use.sightings == 0;
    return t.Changed(row) < step && (admitted || (use.sightings > 0 && !optimizer_.lifetime.IsKnown(use, step - 1)));
  });
}

RowUse RowStore::Sight(size_t table, uint64_t key, int64_t step) {
  const RowLifetime& lifetime = optimizer_.lifetime;
  if (lifetime.admit_after <= 1) return lifetime.Seen({}, step);
  const size_t unadmitted = row_tables_ + table;
  RowTable& t = tables_[unadmitted];
  uint32_t row = t.Find(key);
  const RowUse seen = lifetime.Seen(row == RowTable::kNoRow ? RowUse{} : t.Use(row), step);
  const bool admitted = seen.sightings >= lifetime.admit_after;
  if (row == RowTable::kNoRow) row = CreateRow(unadmitted, key, step);
  KeepForUndo(unadmitted, row);
  t.SetUse(row, admitted ? RowUse{} : seen);
  t.SetChanged(row, step);
  return seen;
}

void RowStore::ApplyCounted(size_t table, const GradientView& sums, int64_t step) {
  RowTable& t = tables_[table];
  const RowLifetime& lifetime = optimizer_.lifetime;
  const RowUpdate update(optimizer_.ForRows().AtStep(step), t.columns());
  if (keeps_undo_) {
    undo_[table].Reserve(sums.keys.size());
    if (row_tables_ < tables_.size()) undo_[row_tables_ + table].Reserve(sums.keys.size());
  }
  t.ForEach(sums.keys, t.stride(), [&](size_t k, uint32_t found) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    uint32_t row = found;
    const bool has_row = row != RowTable::kNoRow && IsKnown(t, row, step);
    const RowUse seen = has_row ? lifetime.Seen(t.Use(row), step) : Sight(table, sums.keys[k], step);
    if (!has_row && seen.sightings < lifetime.admit_after) return;
    if (row == RowTable::kNoRow) row = CreateRow(table, sums.keys[k], step);
    KeepForUndo(table, row);
    if (!has_row) t.Reset(row);
    update(t.Row(row).data(), sums.gradients.data() + k * t.columns());
    t.SetUse(row, seen);
    t.SetChanged(row, step);
  });
}

void RowStore::DropUndo() {
  for (ReplacedRows& replaced : undo_) replaced.Clear();
}

int64_t RowStore::AppliedStep() const {
  base::MutexLock lock(mutex_);
  return step_;
}

int64_t RowStore::UndoLimit() const {
  base::MutexLock lock(mutex_);
  return undo_limit_;
}

void RowStore::SetKeepsUndo(bool keeps) {
  base::MutexLock lock(mutex_);
  keeps_undo_ = keeps;
  if (keeps) return;
  undo_limit_ = step_;
  for (ReplacedRows& replaced : undo_) replaced.Free();
}

int64_t RowStore::StateSamples() const {
  base::MutexLock lock(mutex_);
  return samples_;
}

absl::Status RowStore::UndoTo(int64_t step) {
  base::MutexLock lock(mutex_);
  if (step == step_) return absl::OkStatus();
  if (step > step_ || step < undo_limit_) {
    return base::FailedPrecondition("the shard has applied step {} and can roll back to step {}, not to step {}", step_,
                                    undo_limit_, step);
  }
  for (size_t table = 0; table < tables_.size(); ++table) {
    const ReplacedRows& replaced = undo_[table];
    for (size_t i = 0; i < replaced.size(); ++i) {  // keeps Changed: an export since `step` must contain these rows
      SaveForSnapshot(table, replaced.row(i));
      std::ranges::copy(replaced.values(i), tables_[table].Row(replaced.row(i)).begin());
    }
  }
  DropUndo();
  step_ = step;
  samples_ = undo_samples_;
  return absl::OkStatus();
}

// An earlier copy may have a row that an undo has emptied since, so it must be emptied there too.
bool RowStore::IsExported(size_t table, uint32_t row, int64_t since_step) const {
  const RowTable& t = tables_[table];
  if (since_step > 0) return t.Changed(row) > since_step;
  if (IsKnown(t, row, step_ + 1)) return true;
  return table < row_tables_ && t.Use(row).sightings == 0 && t.Changed(row) > 0;
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
            if (!IsExported(table, next, since_step)) continue;
            if (!wanted(piece.table, t.Key(next))) continue;
            const auto row = t.Row(next);
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
  }
}

std::shared_ptr<RowSnapshot> RowStore::TakeSnapshot() {
  auto snapshot = std::make_shared<RowSnapshot>();
  std::vector<RowSnapshot::Table> freed;  // without the lock
  base::MutexLock lock(mutex_);
  if (snapshot_ != nullptr) freed.swap(snapshot_->tables_);
  snapshot->step_ = step_;
  snapshot->state_samples_ = samples_;
  for (const RowTable& t : tables_) {
    snapshot->tables_.push_back({.rows = t.size(), .read = 0, .saved = SavedRows(t.size(), t.stride())});
  }
  snapshot_ = snapshot;
  return snapshot;
}

void RowStore::EndSnapshot(RowSnapshot& snapshot) {
  std::vector<RowSnapshot::Table> freed;  // without the lock
  base::MutexLock lock(mutex_);
  if (snapshot_.get() != &snapshot) return;
  freed.swap(snapshot.tables_);
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
          piece.keys.push_back(t.Key(s.read));
          piece.values.insert(piece.values.end(), row.begin(), row.end());
        }
        more = s.read < s.rows;
      }
      if (!piece.keys.empty()) MEDLEY_RETURN_IF_ERROR(sink(piece));
    }
  }
  return absl::OkStatus();
}

absl::Status RowStore::Import(int table, std::span<const uint64_t> keys, std::span<const float> values) {
  base::MutexLock lock(mutex_);
  RowTable* t = Find(table);
  if (t == nullptr) return base::InvalidArgument("got rows of table {}, which this shard does not have", table);
  const size_t width = keys.empty() ? t->stride() : values.size() / keys.size();
  const bool counts = optimizer_.lifetime.Counts();
  if (counts && width == kUseFloats && row_tables_ < tables_.size()) t += row_tables_;
  const bool fits = counts ? width == t->stride() : IsRowWidth(optimizer_.kind, t->columns(), width);
  if (values.size() != keys.size() * width || !fits) {
    return base::InvalidArgument("table {}: got {} values for {} rows of {} floats", table, values.size(), keys.size(),
                                 t->stride());
  }
  MEDLEY_RETURN_IF_ERROR(CheckKeys(t->spec(), keys));
  t->ForEach(keys, t->stride(), [&](size_t k, uint32_t found) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    const uint32_t row = found == RowTable::kNoRow ? t->Create(keys[k]) : found;
    SaveForSnapshot(static_cast<size_t>(t - tables_.data()), row);
    std::ranges::copy(values.subspan(k * width, t->stride()), t->Row(row).begin());
  });
  return absl::OkStatus();
}

void RowStore::SetApplied(int64_t step, int64_t samples) {
  base::MutexLock lock(mutex_);
  step_ = undo_limit_ = step;
  samples_ = undo_samples_ = samples;
  DropUndo();
  applied_.NotifyAll();
}

int64_t RowStore::Rows() const {
  base::MutexLock lock(mutex_);
  int64_t rows = 0;
  for (const RowTable& t : tables_) rows += t.size();
  return rows;
}

}  // namespace medley::worker
