#include "worker/pipeline/local_tables.h"

#include <algorithm>

#include "common/base/status.h"
#include "worker/params/initialize.h"

namespace medley::worker {

TableKeeper* KeeperOf(BlockCompute& block) { return dynamic_cast<TableKeeper*>(&block); }

size_t GiveRows(BlockCompute& block, int slot, std::span<const TableKeys> keys,
                std::span<const std::vector<float>> rows, size_t first) {
  TableKeeper* const keeper = KeeperOf(block);
  const size_t tables = block.Tables().size();
  for (size_t t = 0; t < tables; ++t) {
    if (keeper != nullptr) keeper->SetKeys(slot, static_cast<int>(t), keys[first + t].keys);
    block.SetRows(slot, static_cast<int>(t), rows[first + t]);
  }
  return first + tables;
}

LocalTables::LocalTables(std::vector<ParameterSpec> tables, const Optimizer& optimizer, uint64_t seed, int kept_updates)
    : optimizer_(optimizer), kept_updates_(kept_updates) {
  for (ParameterSpec& spec : tables) {
    Table& table = tables_.emplace_back();
    table.spec = std::move(spec);
    const size_t size = static_cast<size_t>(table.spec.Size());
    table.weights.resize(size);
    Initialize(table.spec, seed, table.weights);
    const size_t state_floats = StateFloats(optimizer_.kind);
    table.state_columns = static_cast<size_t>(table.spec.columns) * state_floats;
    table.state.assign(size * state_floats, optimizer_.initial_state);
  }
}

LocalTables::Table* LocalTables::Find(int operation) {
  const auto it = std::ranges::find(tables_, operation, [](const Table& table) { return table.spec.operation; });
  MEDLEY_CHECK(it != tables_.end(), "the stage has no table of this operation");
  return &*it;
}

absl::Status LocalTables::Pull(int64_t step, std::span<const TableKeys> tables, std::vector<std::vector<float>>& rows,
                               const WaitLimit& limit) {
  base::MutexLock lock(mutex_);
  if (!applied_.WaitUntil(mutex_, limit.stop, limit.deadline, [&] { return step_ >= step - 1; })) {
    if (limit.stop.stop_requested()) return base::Cancelled("the pull of rows for step {} was stopped", step);
    return base::DeadlineExceeded("the pull of rows for step {} timed out: the tables have applied step {}", step,
                                  step_);
  }
  if (step - 1 < undo_limit_) {
    return base::OutOfRange("the rows of step {} are no longer kept: the oldest are those of step {}", step - 1,
                            undo_limit_);
  }
  rows.resize(tables.size());
  for (size_t i = 0; i < tables.size(); ++i) {
    const Table& table = *Find(tables[i].operation);
    const size_t columns = static_cast<size_t>(table.spec.columns);
    rows[i].resize(tables[i].keys.size() * columns);
    float* out = rows[i].data();
    for (const uint64_t key : tables[i].keys) {
      if (key >= static_cast<uint64_t>(table.spec.rows)) {
        return base::InvalidArgument("row {} does not exist, the table has {} rows", key, table.spec.rows);
      }
      out = std::copy_n(RowAt(table, key, step - 1), columns, out);
    }
  }
  return absl::OkStatus();
}

// The first later update that changed the row replaced the wanted values.
const float* LocalTables::RowAt(const Table& table, uint64_t key, int64_t version) const {
  const size_t columns = static_cast<size_t>(table.spec.columns);
  for (auto i = static_cast<size_t>(version - undo_limit_); i < table.replaced.size(); ++i) {
    const Replaced& replaced = table.replaced[i];
    const auto found = std::ranges::lower_bound(replaced.keys, key);
    if (found == replaced.keys.end() || *found != key) continue;
    return replaced.weights.data() + static_cast<size_t>(found - replaced.keys.begin()) * columns;
  }
  return table.weights.data() + key * columns;
}

void LocalTables::Save(const Table& table, std::span<const uint64_t> keys, Replaced& replaced) {
  const size_t columns = static_cast<size_t>(table.spec.columns);
  replaced.keys.assign(keys.begin(), keys.end());
  replaced.weights.resize(keys.size() * columns);
  replaced.state.resize(keys.size() * table.state_columns);
  for (size_t i = 0; i < keys.size(); ++i) {
    std::copy_n(table.weights.data() + keys[i] * columns, columns, replaced.weights.data() + i * columns);
    std::copy_n(table.state.data() + keys[i] * table.state_columns, table.state_columns,
                replaced.state.data() + i * table.state_columns);
  }
}

absl::Status LocalTables::Push(int64_t step, std::span<const TableKeys> tables,
                               std::span<const std::span<const float>> gradients, int64_t /*samples*/,
                               const WaitLimit& /*limit*/) {
  base::MutexLock lock(mutex_);
  if (step != step_ + 1) {
    return base::FailedPrecondition("got gradients of step {}, but the tables have applied step {}", step, step_);
  }
  for (size_t i = 0; i < tables.size(); ++i) {
    const auto columns = static_cast<size_t>(tables[i].columns);
    if (gradients[i].size() == tables[i].keys.size() * columns) continue;
    return base::InvalidArgument("got {} floats of gradient for {} rows of {} columns", gradients[i].size(),
                                 tables[i].keys.size(), columns);
  }
  const Optimizer optimizer = optimizer_.ForRows().AtStep(step);
  const bool full = step_ - undo_limit_ == kept_updates_;
  for (size_t i = 0; i < tables.size(); ++i) {
    Table& table = *Find(tables[i].operation);
    const size_t columns = static_cast<size_t>(table.spec.columns);
    Replaced replaced;
    if (full && kept_updates_ > 0) {  // the oldest is dropped, its memory is used again
      replaced = std::move(table.replaced.front());
      table.replaced.pop_front();
    }
    if (kept_updates_ > 0) {
      Save(table, tables[i].keys, replaced);
      table.replaced.push_back(std::move(replaced));
    }
    for (size_t k = 0; k < tables[i].keys.size(); ++k) {
      const size_t at = tables[i].keys[k] * columns;
      const std::span<float> state =
          std::span(table.state).subspan(tables[i].keys[k] * table.state_columns, table.state_columns);
      Apply(optimizer, std::span(table.weights).subspan(at, columns), state,
            gradients[i].subspan(k * columns, columns));
    }
  }
  step_ = step;
  if (full) ++undo_limit_;
  applied_.NotifyAll();
  return absl::OkStatus();
}

int64_t LocalTables::AppliedStep() const {
  base::MutexLock lock(mutex_);
  return step_;
}

int64_t LocalTables::UndoLimit() const {
  base::MutexLock lock(mutex_);
  return undo_limit_;
}

absl::Status LocalTables::UndoTo(int64_t step) {
  base::MutexLock lock(mutex_);
  if (step < undo_limit_ || step > step_) {
    return base::FailedPrecondition("the tables have applied step {} and can roll back to step {}, not to step {}",
                                    step_, undo_limit_, step);
  }
  for (; step_ > step; --step_) {
    for (Table& table : tables_) {
      const Replaced& last = table.replaced.back();
      const size_t columns = static_cast<size_t>(table.spec.columns);
      for (size_t i = 0; i < last.keys.size(); ++i) {
        std::copy_n(last.weights.data() + i * columns, columns, table.weights.data() + last.keys[i] * columns);
        std::copy_n(last.state.data() + i * table.state_columns, table.state_columns,
                    table.state.data() + last.keys[i] * table.state_columns);
      }
      table.replaced.pop_back();
    }
  }
  return absl::OkStatus();
}

std::span<float> LocalTables::Weights(int operation) {
  base::MutexLock lock(mutex_);
  return Find(operation)->weights;
}

std::span<float> LocalTables::State(int operation) {
  base::MutexLock lock(mutex_);
  return Find(operation)->state;
}

void LocalTables::SetAppliedStep(int64_t step) {
  base::MutexLock lock(mutex_);
  step_ = step;
  undo_limit_ = step;
  for (Table& table : tables_) table.replaced.clear();
  applied_.NotifyAll();
}

}  // namespace medley::worker
