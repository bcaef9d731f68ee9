#include "worker/ps/row_store.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/status.h"
#include "worker/params/row_update.h"

namespace medley::worker {
namespace {
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

absl::StatusOr<std::shared_ptr<RowStore>> RowStore::Make(std::vector<ParameterSpec> tables, const Optimizer& optimizer,
                                                         uint64_t seed, const RowTierOptions& tiers) {
  auto store = std::make_shared<RowStore>(std::move(tables), optimizer, seed);
  base::MutexLock lock(store->mutex_);
  MEDLEY_ASSIGN_OR_RETURN(store->tiers_, RowTiers::Open(tiers, store->tables_));
  if (store->tiers_ == nullptr) return store;
  store->fetch_ahead_ = std::make_unique<FetchAhead>(
      [own = store.get()](int table, std::span<const uint64_t> keys) { own->Load(table, keys); });
  return store;
}

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

RowStore::~RowStore() {
  fetch_ahead_.reset();
  base::MutexLock lock(mutex_);
  if (snapshot_ != nullptr) snapshot_->cold_.reset();
}

bool RowStore::IsKnown(std::span<const float> row, int64_t step) const {
  return !optimizer_.lifetime.Counts() || optimizer_.lifetime.IsKnown(UseOf(row.last<kUseFloats>()), step);
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

absl::Status RowStore::Read(int table, std::span<const uint64_t> keys, std::span<float> out) {
  base::SteadyTime start{}, end{};
  if (tiers_ != nullptr) {
    start = tiers_->Now();
    fetch_ahead_->AwaitTable(table);
    end = tiers_->Now();
  }
  std::vector<size_t> not_hot;
  size_t number = 0;
  {
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
    int64_t found = 0;
    t->ForEach(keys, floats, [&](size_t k, uint32_t row) ABSL_NO_THREAD_SAFETY_ANALYSIS {
      if (tiers_ != nullptr) {
        if (row == RowTable::kNoRow && tiers_->MayHave()) return not_hot.push_back(k);
        if (row != RowTable::kNoRow) tiers_->Use(*t, row);
        found += row != RowTable::kNoRow ? 1 : 0;
      }
      CopyWeights(*t, keys[k], row, out.subspan(k * columns, columns));
    });
    if (tiers_ == nullptr) return absl::OkStatus();
    tiers_->CountUses(found);
    tiers_->CountWait(start, end);
    if (not_hot.empty()) return tiers_->status();
    number = static_cast<size_t>(t - tables_.data());
  }
  return ReadCold(number, keys, not_hot, out);
}

absl::Status RowStore::ReadChanged(int table, std::span<const uint64_t> keys, int64_t since,
                                   std::vector<uint32_t>& places, std::vector<float>& rows) const {
  base::MutexLock lock(mutex_);
  const RowTable* t = Find(table);
  if (t == nullptr) return base::NotFound("this shard has no table {}", table);
  if (!KnowsChanges()) return base::FailedPrecondition("table {}: its shard does not know which rows changed", table);
  MEDLEY_RETURN_IF_ERROR(CheckKeys(t->spec(), keys));
  t->ForEach(keys, t->columns(), [&](size_t k, uint32_t row) {
    if (row == RowTable::kNoRow || t->Changed(row) <= since) return;
    const std::span<const float> weights = t->Row(row).first(t->columns());
    places.push_back(static_cast<uint32_t>(k));
    rows.insert(rows.end(), weights.begin(), weights.end());
  });
  return absl::OkStatus();
}

void RowStore::CopyWeights(const RowTable& t, uint64_t key, uint32_t row, std::span<float> to) const {
  if (row == RowTable::kNoRow || !IsKnown(t.Row(row), step_ + 1)) return t.Initial(key, to);
  std::memcpy(to.data(), t.Row(row).data(), to.size_bytes());
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
  if (tiers_ != nullptr) {
    MEDLEY_RETURN_IF_ERROR(tiers_->status());
    tiers_->NoteStep(step);
  }
  DropUndo();
  if (keeps_undo_) pinned_from_ = step;
  undo_samples_ = samples_;
  for (size_t table = 0; table < row_tables_; ++table) ApplyTable(table, gradients, step);
  if (tiers_ != nullptr) MEDLEY_RETURN_IF_ERROR(tiers_->status());
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
    uint32_t row = found == RowTable::kNoRow ? Locate(table, keys[k]) : found;
    if (row == RowTable::kNoRow) row = NewRow(table, keys[k]);
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
  if (tiers_ != nullptr) return NewRow(table, key);
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
  if (row == RowTable::kNoRow) row = Locate(unadmitted, key);
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
    uint32_t row = found == RowTable::kNoRow ? Locate(table, sums.keys[k]) : found;
    const bool has_row = row != RowTable::kNoRow && IsKnown(t.Row(row), step);
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
  pinned_from_ = kNothingPinned;
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
  pinned_from_ = kNothingPinned;
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
  const auto number = static_cast<size_t>(t - tables_.data());
  t->ForEach(keys, t->stride(), [&](size_t k, uint32_t found) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    uint32_t row = found == RowTable::kNoRow ? Locate(number, keys[k]) : found;
    if (row == RowTable::kNoRow) row = NewRow(number, keys[k]);
    SaveForSnapshot(number, row);
    std::ranges::copy(values.subspan(k * width, t->stride()), t->Row(row).begin());
    t->MarksOf(row).changed = true;
  });
  return tiers_ == nullptr ? absl::OkStatus() : tiers_->status();
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
  return tiers_ == nullptr ? rows : rows + tiers_->ColdRowCount();
}

}  // namespace medley::worker
