#include "worker/pipeline/local_tables.h"

#include <algorithm>

#include "common/base/status.h"
#include "worker/params/initialize.h"

namespace medley::worker {

LocalTables::LocalTables(std::vector<ParameterSpec> tables, const Optimizer& optimizer, uint64_t seed)
    : optimizer_(optimizer) {
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
      out = std::copy_n(table.weights.data() + key * columns, columns, out);
    }
  }
  return absl::OkStatus();
}

void LocalTables::SaveUndo(Table& table, std::span<const uint64_t> keys) {
  const size_t columns = static_cast<size_t>(table.spec.columns);
  table.undo_keys.assign(keys.begin(), keys.end());
  table.undo_weights.resize(keys.size() * columns);
  table.undo_state.resize(keys.size() * table.state_columns);
  for (size_t i = 0; i < keys.size(); ++i) {
    std::copy_n(table.weights.data() + keys[i] * columns, columns, table.undo_weights.data() + i * columns);
    std::copy_n(table.state.data() + keys[i] * table.state_columns, table.state_columns,
                table.undo_state.data() + i * table.state_columns);
  }
}

absl::Status LocalTables::Push(int64_t step, std::span<const TableKeys> tables,
                               std::span<const std::span<const float>> gradients, int64_t /*samples*/,
                               const WaitLimit& /*limit*/) {
  base::MutexLock lock(mutex_);
  if (step != step_ + 1) {
    return base::FailedPrecondition("got gradients of step {}, but the tables have applied step {}", step, step_);
  }
  const Optimizer optimizer = optimizer_.AtStep(step);
  for (size_t i = 0; i < tables.size(); ++i) {
    Table& table = *Find(tables[i].operation);
    const size_t columns = static_cast<size_t>(table.spec.columns);
    if (gradients[i].size() != tables[i].keys.size() * columns) {
      return base::InvalidArgument("got {} floats of gradient for {} rows of {} columns", gradients[i].size(),
                                   tables[i].keys.size(), columns);
    }
    SaveUndo(table, tables[i].keys);
    for (size_t k = 0; k < tables[i].keys.size(); ++k) {
      const size_t at = tables[i].keys[k] * columns;
      const std::span<float> state =
          std::span(table.state).subspan(tables[i].keys[k] * table.state_columns, table.state_columns);
      Apply(optimizer, std::span(table.weights).subspan(at, columns), state,
            gradients[i].subspan(k * columns, columns));
    }
  }
  undo_limit_ = step_;
  step_ = step;
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
  if (step == step_) return absl::OkStatus();
  if (step != undo_limit_) {
    return base::FailedPrecondition("the tables have applied step {} and can roll back to step {}, not to step {}",
                                    step_, undo_limit_, step);
  }
  for (Table& table : tables_) {
    const size_t columns = static_cast<size_t>(table.spec.columns);
    for (size_t i = 0; i < table.undo_keys.size(); ++i) {
      const size_t at = table.undo_keys[i] * columns;
      std::copy_n(table.undo_weights.data() + i * columns, columns, table.weights.data() + at);
      std::copy_n(table.undo_state.data() + i * table.state_columns, table.state_columns,
                  table.state.data() + table.undo_keys[i] * table.state_columns);
    }
    table.undo_keys.clear();
  }
  step_ = step;
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
  for (Table& table : tables_) table.undo_keys.clear();
  applied_.NotifyAll();
}

}  // namespace medley::worker
