#include "worker/aten/resident_tables.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <utility>

#include "common/base/status.h"
#include "worker/aten/caught.h"
#include "worker/aten/resident_update.h"
#include "worker/params/initialize.h"

namespace medley::worker::aten {
namespace {

at::Tensor Flat(const at::Tensor& rows) { return rows.defined() ? rows.view({-1}) : rows; }

at::Tensor OverWhole(std::vector<int64_t>& numbers) {
  return at::from_blob(numbers.data(), {std::ssize(numbers)}, at::TensorOptions().dtype(at::kLong));
}

}  // namespace

// Calls use(whole, one) for every float of a part of the state, where it is in the state of its row and in `part`.
template <typename Use>
void ResidentTables::ForEachRow(Table& table, size_t s, const Use& use, std::vector<float>& part) const {
  const auto columns = static_cast<size_t>(table.spec.columns);
  for (size_t i = 0; i < part.size(); ++i) {
    const size_t row = i / columns, within = i % columns;
    use(table.host_state[(row * state_floats_ + s) * columns + within], part[i]);
  }
}

double ResidentTables::Bytes(const std::vector<ParameterSpec>& tables, const Optimizer& optimizer) {
  double floats = 0;
  for (const ParameterSpec& table : tables) floats += static_cast<double>(table.Size());
  return floats * sizeof(float) * static_cast<double>(1 + StateFloats(optimizer.kind));
}

ResidentTables::ResidentTables(const std::vector<ParameterSpec>& tables, const Optimizer& optimizer, int kept_updates,
                               const Place& place)
    : optimizer_(optimizer), state_floats_(StateFloats(optimizer.kind)), kept_updates_(kept_updates), place_(place) {
  const at::AutoGradMode none(false);
  for (const ParameterSpec& spec : tables) {
    Table& table = tables_.emplace_back();
    table.spec = spec;
    table.rows.weights = at::empty({spec.rows, spec.columns}, place_.Floats());
    for (size_t s = 0; s < state_floats_; ++s) {
      table.rows.state[s] = at::full({spec.rows, spec.columns}, optimizer_.initial_state, place_.Floats());
    }
  }
}

absl::StatusOr<std::unique_ptr<ResidentTables>> ResidentTables::Create(const std::vector<ParameterSpec>& tables,
                                                                       const Optimizer& optimizer, uint64_t seed,
                                                                       int kept_updates, const Place& place) try {
  std::unique_ptr<ResidentTables> made(new ResidentTables(tables, optimizer, kept_updates, place));
  base::MutexLock lock(made->mutex_);
  for (Table& table : made->tables_) {
    std::vector<float> values(static_cast<size_t>(table.spec.Size()));
    Initialize(table.spec, seed, values);
    MEDLEY_RETURN_IF_ERROR(place.CopyIn(values, table.rows.weights));
  }
  return made;
} catch (const std::exception& error) {
  return FromTorch(error, "embedding tables");
}

ResidentTables::Table& ResidentTables::Find(int operation) {
  const auto it = std::ranges::find(tables_, operation, [](const Table& table) { return table.spec.operation; });
  MEDLEY_CHECK(it != tables_.end(), "the stage has no table of this operation");
  return *it;
}

ResidentTables::Rows ResidentTables::Taken(const Rows& rows, const at::Tensor& keys_there) const {
  Rows taken{at::index_select(rows.weights, 0, keys_there), {}};
  for (size_t s = 0; s < state_floats_; ++s) taken.state[s] = at::index_select(rows.state[s], 0, keys_there);
  return taken;
}

void ResidentTables::PutBack(const Rows& rows, const at::Tensor& keys_there, Rows& to) const {
  to.weights.index_copy_(0, keys_there, rows.weights);
  for (size_t s = 0; s < state_floats_; ++s) to.state[s].index_copy_(0, keys_there, rows.state[s]);
}

absl::StatusOr<at::Tensor> ResidentTables::Gather(size_t index, std::span<const uint64_t> keys,
                                                  const at::Tensor& keys_there, int64_t version) {
  const at::AutoGradMode none(false);
  base::MutexLock lock(mutex_);
  if (version < undo_limit_ || version > step_) {
    return base::OutOfRange("the rows of step {} are not kept: those of steps {} to {} are", version, undo_limit_,
                            step_);
  }
  const Table& table = tables_.at(index);
  at::Tensor rows = at::index_select(table.rows.weights, 0, keys_there);
  // The first of several later updates has the wanted values.
  for (auto i = table.replaced.size(); i-- > static_cast<size_t>(version - undo_limit_);) {
    const Replaced& replaced = table.replaced[i];
    std::vector<int64_t> from, to;
    for (size_t a = 0, b = 0; a < keys.size() && b < replaced.keys.size();) {
      if (keys[a] == replaced.keys[b]) {
        to.push_back(static_cast<int64_t>(a));
        from.push_back(static_cast<int64_t>(b));
      }
      const bool next_a = keys[a] <= replaced.keys[b], next_b = replaced.keys[b] <= keys[a];
      a += next_a ? 1 : 0;
      b += next_b ? 1 : 0;
    }
    if (to.empty()) continue;
    MEDLEY_ASSIGN_OR_RETURN(const at::Tensor from_there, place_.ToPlace(OverWhole(from)));
    MEDLEY_ASSIGN_OR_RETURN(const at::Tensor to_there, place_.ToPlace(OverWhole(to)));
    rows.index_copy_(0, to_there, at::index_select(replaced.rows.weights, 0, from_there));
  }
  return rows;
}

void ResidentTables::SetGradients(int64_t step, size_t table, const at::Tensor& keys_there, const at::Tensor& sums) {
  base::MutexLock lock(mutex_);
  tables_.at(table).gradients = {step, keys_there, sums};
}

absl::Status ResidentTables::Pull(int64_t step, std::span<const TableKeys> tables,
                                  std::vector<std::vector<float>>& rows, const WaitLimit& limit) {
  base::MutexLock lock(mutex_);
  MEDLEY_RETURN_IF_ERROR(failed_);
  if (!applied_.WaitUntil(mutex_, limit.stop, limit.deadline, [&] { return step_ >= step - 1; })) {
    if (limit.stop.stop_requested()) return base::Cancelled("the pull of rows for step {} was stopped", step);
    return base::DeadlineExceeded("the pull of rows for step {} timed out: the tables have applied step {}", step,
                                  step_);
  }
  for (const TableKeys& table : tables) {
    const int64_t all = Find(table.operation).spec.rows;
    if (table.keys.empty() || table.keys.back() < static_cast<uint64_t>(all)) continue;
    return base::InvalidArgument("row {} does not exist, the table has {} rows", table.keys.back(), all);
  }
  rows.assign(tables.size(), {});
  return absl::OkStatus();
}

absl::Status ResidentTables::Apply(Table& table, const TableKeys& keys, int64_t step) {
  Replaced replaced{keys.keys, table.gradients.keys_there, {}};
  if (!keys.keys.empty()) {
    if (table.gradients.step != step) return base::Internal("no gradients of step {} are on the device", step);
    replaced.rows = Taken(table.rows, replaced.keys_there);
    Rows updated{at::empty_like(replaced.rows.weights), {}};
    for (size_t s = 0; s < state_floats_; ++s) updated.state[s] = at::empty_like(replaced.rows.weights);
    const at::Tensor sums =
        table.gradients.sums.defined() ? table.gradients.sums : at::zeros_like(replaced.rows.weights);
    const auto scratch = [&] { return at::empty({sums.numel()}, place_.Floats()); };
    ApplyOnDevice(optimizer_.ForRows().AtStep(step),
                  {.weights = Flat(replaced.rows.weights),
                   .gradient = Flat(sums),
                   .state = {Flat(replaced.rows.state[0]), Flat(replaced.rows.state[1])},
                   .new_weights = Flat(updated.weights),
                   .new_state = {Flat(updated.state[0]), Flat(updated.state[1])},
                   .scratch = {scratch(), scratch()}});
    PutBack(updated, replaced.keys_there, table.rows);
  }
  table.gradients = {};
  if (kept_updates_ == 0) return absl::OkStatus();
  if (step_ - undo_limit_ == kept_updates_) table.replaced.pop_front();
  table.replaced.push_back(std::move(replaced));
  return absl::OkStatus();
}

absl::Status ResidentTables::Push(int64_t step, std::span<const TableKeys> tables,
                                  std::span<const std::span<const float>> /*gradients*/, int64_t /*samples*/,
                                  const WaitLimit& /*limit*/) {
  const at::AutoGradMode none(false);
  base::MutexLock lock(mutex_);
  MEDLEY_RETURN_IF_ERROR(failed_);
  if (step != step_ + 1) {
    return base::FailedPrecondition("got gradients of step {}, but the tables have applied step {}", step, step_);
  }
  ForgetHost();
  for (const TableKeys& keys : tables) {
    // A table that was changed beside one that was not cannot be undone: the job must not go on with them.
    failed_ = Caught("the update of rows", [&] { return Apply(Find(keys.operation), keys, step); });
    MEDLEY_RETURN_IF_ERROR(failed_);
  }
  if (step_ - undo_limit_ == kept_updates_) ++undo_limit_;
  step_ = step;
  applied_.NotifyAll();
  return absl::OkStatus();
}

int64_t ResidentTables::AppliedStep() const {
  base::MutexLock lock(mutex_);
  return step_;
}

int64_t ResidentTables::UndoLimit() const {
  base::MutexLock lock(mutex_);
  return undo_limit_;
}

absl::Status ResidentTables::UndoTo(int64_t step) {
  const at::AutoGradMode none(false);
  base::MutexLock lock(mutex_);
  if (step < undo_limit_ || step > step_) {
    return base::FailedPrecondition("the tables have applied step {} and can roll back to step {}, not to step {}",
                                    step_, undo_limit_, step);
  }
  ForgetHost();
  for (; step_ > step; --step_) {
    for (Table& table : tables_) {
      const Replaced& last = table.replaced.back();
      if (!last.keys.empty()) {
        MEDLEY_RETURN_IF_ERROR(Caught("undoing updates of rows", [&]() -> absl::Status {
          PutBack(last.rows, last.keys_there, table.rows);
          return absl::OkStatus();
        }));
      }
      table.replaced.pop_back();
    }
  }
  return absl::OkStatus();
}

// The state of a row is together on the host: all of its first floats, then all of its second. Copies allocate nothing
// on the device.
absl::Status ResidentTables::ToHost(Table& table) {
  if (!table.host_weights.empty()) return absl::OkStatus();
  table.host_weights.resize(static_cast<size_t>(table.spec.Size()));
  table.host_state.resize(table.host_weights.size() * state_floats_);
  MEDLEY_RETURN_IF_ERROR(place_.CopyOut(table.rows.weights, table.host_weights));
  std::vector<float> part(state_floats_ > 1 ? table.host_weights.size() : 0);
  if (state_floats_ == 1) return place_.CopyOut(table.rows.state[0], table.host_state);
  for (size_t s = 0; s < state_floats_; ++s) {
    MEDLEY_RETURN_IF_ERROR(place_.CopyOut(table.rows.state[s], part));
    ForEachRow(
        table, s, [](float& whole, float& one) { whole = one; }, part);
  }
  return absl::OkStatus();
}

absl::Status ResidentTables::FromHost(Table& table) {
  if (table.host_weights.empty()) return absl::OkStatus();
  MEDLEY_RETURN_IF_ERROR(place_.CopyIn(table.host_weights, table.rows.weights));
  if (state_floats_ == 1) return place_.CopyIn(table.host_state, table.rows.state[0]);
  std::vector<float> part(state_floats_ > 1 ? table.host_weights.size() : 0);
  for (size_t s = 0; s < state_floats_; ++s) {
    ForEachRow(
        table, s, [](float& whole, float& one) { one = whole; }, part);
    MEDLEY_RETURN_IF_ERROR(place_.CopyIn(part, table.rows.state[s]));
  }
  return absl::OkStatus();
}

void ResidentTables::ForgetHost() {
  for (Table& table : tables_) table.host_weights = table.host_state = std::vector<float>();
}

std::span<float> ResidentTables::Weights(int operation) {
  base::MutexLock lock(mutex_);
  Table& table = Find(operation);
  failed_.Update(Caught("copying a table to the host", [&] { return ToHost(table); }));
  return table.host_weights;
}

std::span<float> ResidentTables::State(int operation) {
  base::MutexLock lock(mutex_);
  Table& table = Find(operation);
  failed_.Update(Caught("copying a table to the host", [&] { return ToHost(table); }));
  return table.host_state;
}

absl::Status ResidentTables::Failure() const {
  base::MutexLock lock(mutex_);
  return failed_;
}

void ResidentTables::SetAppliedStep(int64_t step) {
  base::MutexLock lock(mutex_);
  for (Table& table : tables_) {
    failed_.Update(Caught("copying a table from the host", [&] { return FromHost(table); }));
    table.replaced.clear();
    table.gradients = {};
  }
  step_ = undo_limit_ = step;
  applied_.NotifyAll();
}

}  // namespace medley::worker::aten
