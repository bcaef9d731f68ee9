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

constexpr int64_t kStepsOfHitRate = 1000;  // between two lines of the log

at::Tensor Flat(const at::Tensor& rows) { return rows.defined() ? rows.view({-1}) : rows; }

at::Tensor OverWhole(std::vector<int64_t>& numbers) {
  return at::from_blob(numbers.data(), {std::ssize(numbers)}, at::TensorOptions().dtype(at::kLong));
}

}  // namespace

double ResidentTables::Bytes(const std::vector<ParameterSpec>& tables, const Optimizer& optimizer) {
  double floats = 0;
  for (const ParameterSpec& table : tables) floats += static_cast<double>(table.Size());
  return floats * sizeof(float) * static_cast<double>(1 + StateFloats(optimizer.kind));
}

ResidentTables::ResidentTables(const std::vector<ParameterSpec>& tables, const Optimizer& optimizer, int kept_updates,
                               const Place& place, double cache_bytes)
    : optimizer_(optimizer), state_floats_(StateFloats(optimizer.kind)), kept_updates_(kept_updates), place_(place) {
  const at::AutoGradMode none(false);
  const double all = Bytes(tables, optimizer);
  for (const ParameterSpec& spec : tables) {
    Table& table = tables_.emplace_back();
    table.spec = spec;
    int64_t rows = spec.rows;
    if (cache_bytes > 0 && cache_bytes < all) {
      rows = std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(rows) * cache_bytes / all));
      table.slots.emplace(spec.rows, rows);
    }
    table.rows.weights = at::empty({rows, spec.columns}, place_.Floats());
    for (size_t s = 0; s < state_floats_; ++s) {
      table.rows.state[s] = at::full({rows, spec.columns}, optimizer_.initial_state, place_.Floats());
    }
  }
}

ResidentTables::~ResidentTables() {
  base::MutexLock lock(mutex_);
  SayHitRate();
}

absl::StatusOr<std::unique_ptr<ResidentTables>> ResidentTables::Create(const std::vector<ParameterSpec>& tables,
                                                                       const Optimizer& optimizer, uint64_t seed,
                                                                       int kept_updates, const Place& place,
                                                                       double cache_bytes) try {
  std::unique_ptr<ResidentTables> made(new ResidentTables(tables, optimizer, kept_updates, place, cache_bytes));
  base::MutexLock lock(made->mutex_);
  for (Table& table : made->tables_) {
    std::vector<float> values(static_cast<size_t>(table.spec.Size()));
    Initialize(table.spec, seed, values);
    if (!table.slots.has_value()) {
      MEDLEY_RETURN_IF_ERROR(place.CopyIn(values, table.rows.weights));
      continue;
    }
    table.host_state.assign(values.size() * made->state_floats_, optimizer.initial_state);
    table.host_weights = std::move(values);
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

ResidentTables::Rows ResidentTables::Taken(const Rows& rows, const at::Tensor& places) const {
  Rows taken{at::index_select(rows.weights, 0, places), {}};
  for (size_t s = 0; s < state_floats_; ++s) taken.state[s] = at::index_select(rows.state[s], 0, places);
  return taken;
}

void ResidentTables::PutBack(const Rows& rows, const at::Tensor& places, Rows& to) const {
  to.weights.index_copy_(0, places, rows.weights);
  for (size_t s = 0; s < state_floats_; ++s) to.state[s].index_copy_(0, places, rows.state[s]);
}

absl::StatusOr<ResidentTables::Gathered> ResidentTables::Gather(size_t index, std::span<const uint64_t> keys,
                                                                int64_t version, int64_t step) {
  const at::AutoGradMode none(false);
  base::MutexLock lock(mutex_);
  MEDLEY_RETURN_IF_ERROR(failed_);
  if (version < undo_limit_ || version > step_) {
    return base::OutOfRange("the rows of step {} are not kept: those of steps {} to {} are", version, undo_limit_,
                            step_);
  }
  Table& table = tables_.at(index);
  MEDLEY_ASSIGN_OR_RETURN(const at::Tensor places, PlacesOf(table, keys, step));
  at::Tensor rows = at::index_select(table.rows.weights, 0, places);
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
  return Gathered{rows, places};
}

void ResidentTables::SetGradients(int64_t step, size_t table, const at::Tensor& places, const at::Tensor& sums) {
  base::MutexLock lock(mutex_);
  tables_.at(table).gradients = {step, places, sums};
}

absl::Status ResidentTables::Pull(int64_t step, std::span<const TableKeys> tables,
                                  std::vector<std::vector<float>>& rows, const WaitLimit& limit) {
  base::MutexLock lock(mutex_);
  MEDLEY_RETURN_IF_ERROR(failed_);
  for (const TableKeys& table : tables) {
    const int64_t all = Find(table.operation).spec.rows;
    if (table.keys.empty() || table.keys.back() < static_cast<uint64_t>(all)) continue;
    return base::InvalidArgument("row {} does not exist, the table has {} rows", table.keys.back(), all);
  }
  for (const TableKeys& keys : tables) {
    Table& table = Find(keys.operation);
    const int64_t missed = table.slots.has_value() ? table.slots->misses() : 0;
    if (table.slots.has_value()) {
      MEDLEY_RETURN_IF_ERROR(Caught("rows of a coming step", [&] { return PlacesOf(table, keys.keys, 0).status(); }));
    }
    // The step itself finds what its pull has brought: only pulls count.
    const int64_t misses = table.slots.has_value() ? table.slots->misses() - missed : 0;
    counts_.misses += misses;
    counts_.hits += std::ssize(keys.keys) - misses;
  }
  if (!applied_.WaitUntil(mutex_, limit.stop, limit.deadline, [&] { return step_ >= step - 1; })) {
    if (limit.stop.stop_requested()) return base::Cancelled("the pull of rows for step {} was stopped", step);
    return base::DeadlineExceeded("the pull of rows for step {} timed out: the tables have applied step {}", step,
                                  step_);
  }
  rows.assign(tables.size(), {});
  return absl::OkStatus();
}

absl::Status ResidentTables::Apply(Table& table, const TableKeys& keys, int64_t step) {
  Replaced replaced{keys.keys, table.gradients.places, {}};
  if (!keys.keys.empty()) {
    if (table.gradients.step != step) return base::Internal("no gradients of step {} are on the device", step);
    replaced.rows = Taken(table.rows, replaced.places);
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
    PutBack(updated, replaced.places, table.rows);
    if (table.slots.has_value()) table.slots->SetChanged(keys.keys);
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
  if (step % kStepsOfHitRate == 0) SayHitRate();
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
          PutBack(last.rows, last.places, table.rows);
          if (table.slots.has_value()) table.slots->SetChanged(last.keys);
          return absl::OkStatus();
        }));
      }
      table.replaced.pop_back();
    }
  }
  return absl::OkStatus();
}

}  // namespace medley::worker::aten
