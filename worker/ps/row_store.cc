#include "worker/ps/row_store.h"

#include <algorithm>
#include <utility>

#include "common/base/status.h"

namespace medley::worker {
namespace {
constexpr size_t kPieceFloats = (size_t{1} << 20) / sizeof(float) - 4096;
constexpr size_t kKeyFloats = sizeof(uint64_t) / sizeof(float);
constexpr size_t kRowsPerLock = 65536;  // most rows that an export looks at while updates and pulls wait

absl::Status CheckKeys(const ParameterSpec& spec, std::span<const uint64_t> keys) {
  const auto beyond = std::ranges::find_if(keys, [&](uint64_t key) { return key >= static_cast<uint64_t>(spec.rows); });
  if (beyond == keys.end()) return absl::OkStatus();
  return base::InvalidArgument("row {} does not exist, table {} has {} rows", *beyond, spec.operation, spec.rows);
}

}  // namespace

RowStore::RowStore(std::vector<ParameterSpec> tables, const Optimizer& optimizer, uint64_t seed)
    : optimizer_(optimizer) {
  for (ParameterSpec& spec : tables) tables_.emplace_back(std::move(spec), optimizer, seed);
}

RowTable* RowStore::Find(int table) {
  for (RowTable& t : tables_) {
    if (t.spec().operation == table) return &t;
  }
  return nullptr;
}

absl::Status RowStore::Read(int table, std::span<const uint64_t> keys, std::vector<float>& out) {
  base::MutexLock lock(mutex_);
  RowTable* t = Find(table);
  if (t == nullptr) return base::NotFound("this shard has no table {}", table);
  MEDLEY_RETURN_IF_ERROR(CheckKeys(t->spec(), keys));
  out.reserve(out.size() + keys.size() * t->columns());
  for (const uint64_t key : keys) {
    const auto weights = t->Row(t->FindOrCreate(key)).first(t->columns());
    out.insert(out.end(), weights.begin(), weights.end());
  }
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
  undo_rows_.clear();
  undo_values_.clear();
  undo_samples_ = samples_;
  for (size_t table = 0; table < tables_.size(); ++table) ApplyTable(table, gradients, step);
  undo_limit_ = keeps_undo_ ? step_ : step;
  step_ = step;
  samples_ += samples;
  applied_.NotifyAll();
  return absl::OkStatus();
}

void RowStore::ApplyTable(size_t table, std::span<const GradientView> gradients, int64_t step) {
  RowTable& t = tables_[table];
  const size_t columns = t.columns();
  const Optimizer optimizer = optimizer_.ForRows().AtStep(step);
  std::vector<uint32_t> rows;  // rows with a gradient, in the order of their first one
  std::vector<float> sums;
  for (const GradientView& view : gradients) {
    if (view.table != t.spec().operation) continue;
    for (size_t k = 0; k < view.keys.size(); ++k) {
      const uint32_t row = t.FindOrCreate(view.keys[k]);
      uint32_t& place = t.Mark(row);  // index in `rows` + 1
      if (place == 0) {
        rows.push_back(row);
        place = static_cast<uint32_t>(rows.size());
        sums.resize(sums.size() + columns);
      }
      float* sum = sums.data() + (place - 1) * columns;
      const float* gradient = view.gradients.data() + k * columns;
      for (size_t c = 0; c < columns; ++c) sum[c] += gradient[c];
    }
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    SaveForSnapshot(table, rows[i]);
    const auto row = t.Row(rows[i]);
    if (keeps_undo_) {
      undo_rows_.push_back({table, rows[i]});
      undo_values_.insert(undo_values_.end(), row.begin(), row.end());
    }
    worker::Apply(optimizer, row.first(columns), row.subspan(columns), std::span(sums).subspan(i * columns, columns));
    t.SetChanged(rows[i], step);
    t.Mark(rows[i]) = 0;
  }
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
  undo_rows_ = {};
  undo_values_ = {};
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
  size_t at = 0;
  for (const Touched& touched : undo_rows_) {  // keeps Changed: an export since `step` must contain these rows
    SaveForSnapshot(touched.table, touched.row);
    const auto row = tables_[touched.table].Row(touched.row);
    std::copy_n(undo_values_.begin() + static_cast<std::ptrdiff_t>(at), row.size(), row.begin());
    at += row.size();
  }
  undo_rows_.clear();
  undo_values_.clear();
  step_ = step;
  samples_ = undo_samples_;
  return absl::OkStatus();
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
            if (t.Changed(next) <= since_step && since_step > 0) continue;
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
        for (; s.read < s.rows && piece.values.size() < kPieceFloats; ++s.read) {
          const auto row = s.saved.Contains(s.read) ? s.saved.Row(s.read) : t.Row(s.read);
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
  if (values.size() != keys.size() * t->stride()) {
    return base::InvalidArgument("table {}: got {} values for {} rows of {} floats", table, values.size(), keys.size(),
                                 t->stride());
  }
  MEDLEY_RETURN_IF_ERROR(CheckKeys(t->spec(), keys));
  for (size_t k = 0; k < keys.size(); ++k) {
    const uint32_t number = t->FindOrCreate(keys[k]);
    SaveForSnapshot(static_cast<size_t>(t - tables_.data()), number);
    const auto row = t->Row(number);
    std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(k * t->stride()), t->stride(), row.begin());
  }
  return absl::OkStatus();
}

void RowStore::SetApplied(int64_t step, int64_t samples) {
  base::MutexLock lock(mutex_);
  step_ = undo_limit_ = step;
  samples_ = undo_samples_ = samples;
  undo_rows_.clear();
  undo_values_.clear();
  applied_.NotifyAll();
}

int64_t RowStore::Rows() const {
  base::MutexLock lock(mutex_);
  int64_t rows = 0;
  for (const RowTable& t : tables_) rows += t.size();
  return rows;
}

}  // namespace medley::worker
