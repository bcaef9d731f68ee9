// The tables of ResidentTables on the host: for checkpoints and transfers, and where the device has only some rows.
#include <algorithm>
#include <utility>

#include "common/base/log.h"
#include "common/base/status.h"
#include "worker/aten/caught.h"
#include "worker/aten/resident_tables.h"

namespace medley::worker::aten {
namespace {

at::Tensor OverNumbers(const std::vector<int64_t>& numbers) {
  return at::from_blob(const_cast<int64_t*>(numbers.data()), {std::ssize(numbers)},
                       at::TensorOptions().dtype(at::kLong));
}

// A tensor with room for `rows` rows, of which the first are those of `from`.
at::Tensor Grown(const at::Tensor& from, int64_t rows) {
  const at::Tensor grown = at::empty({rows, from.size(1)}, from.options());
  grown.narrow(0, 0, from.size(0)).copy_(from);
  return grown;
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

absl::StatusOr<at::Tensor> ResidentTables::PlacesOf(Table& table, std::span<const uint64_t> keys, int64_t step) {
  if (!table.slots.has_value()) {
    return place_.ToPlace(OverNumbers({keys.begin(), keys.end()}));
  }
  const RowSlots::Fetched fetched = table.slots->Fetch(keys, step, undo_limit_);
  // A row whose slot was promised to another and whose values are nowhere else: the job must not go on.
  failed_ = Caught("copying rows to the device", [&] { return Bring(table, keys, fetched); });
  MEDLEY_RETURN_IF_ERROR(failed_);
  return place_.ToPlace(OverNumbers(fetched.slots));
}

absl::Status ResidentTables::Bring(Table& table, std::span<const uint64_t> keys, const RowSlots::Fetched& fetched) {
  const at::AutoGradMode none(false);
  if (const int64_t slots = table.slots->capacity(); slots > table.rows.weights.size(0)) {
    const int64_t room = slots + slots / 4;
    base::log::Info("open steps use more rows than their cache on the device has room for: it grows",
                    {{"table", table.spec.name}, {"rows", std::to_string(room)}});
    table.rows.weights = Grown(table.rows.weights, room);
    for (size_t s = 0; s < state_floats_; ++s) table.rows.state[s] = Grown(table.rows.state[s], room);
  }
  MEDLEY_RETURN_IF_ERROR(WriteBack(table, fetched.evicted));
  if (fetched.missing.empty()) return absl::OkStatus();
  counts_.bytes_in += RowBytes(table, fetched.missing.size());
  const auto columns = static_cast<size_t>(table.spec.columns);
  std::vector<int64_t> slots;
  for (const size_t k : fetched.missing) slots.push_back(fetched.slots[k]);
  MEDLEY_ASSIGN_OR_RETURN(const at::Tensor places, place_.ToPlace(OverNumbers(slots)));
  const at::Tensor placed = at::empty({std::ssize(slots), table.spec.columns}, place_.Floats());
  std::vector<float> values(slots.size() * columns);
  // `from`: of the host's floats for each row, those at `first`.
  const auto copy = [&](const std::vector<float>& from, size_t floats, size_t first, at::Tensor& to) -> absl::Status {
    for (size_t i = 0; i < slots.size(); ++i) {
      std::copy_n(from.data() + keys[fetched.missing[i]] * floats + first, columns, values.data() + i * columns);
    }
    MEDLEY_RETURN_IF_ERROR(place_.CopyIn(values, placed));
    to.index_copy_(0, places, placed);
    return absl::OkStatus();
  };
  MEDLEY_RETURN_IF_ERROR(copy(table.host_weights, columns, 0, table.rows.weights));
  for (size_t s = 0; s < state_floats_; ++s) {
    MEDLEY_RETURN_IF_ERROR(copy(table.host_state, columns * state_floats_, s * columns, table.rows.state[s]));
  }
  return absl::OkStatus();
}

absl::Status ResidentTables::WriteBack(Table& table, std::span<const RowSlots::Evicted> rows) {
  if (rows.empty()) return absl::OkStatus();
  counts_.bytes_out += RowBytes(table, rows.size());
  const at::AutoGradMode none(false);
  const auto columns = static_cast<size_t>(table.spec.columns);
  std::vector<int64_t> slots;
  for (const RowSlots::Evicted& row : rows) slots.push_back(row.slot);
  MEDLEY_ASSIGN_OR_RETURN(const at::Tensor places, place_.ToPlace(OverNumbers(slots)));
  std::vector<float> values(slots.size() * columns);
  const auto copy = [&](const at::Tensor& from, size_t floats, size_t first, std::vector<float>& to) -> absl::Status {
    MEDLEY_RETURN_IF_ERROR(place_.CopyOut(at::index_select(from, 0, places), values));
    for (size_t i = 0; i < slots.size(); ++i) {
      std::copy_n(values.data() + i * columns, columns, to.data() + rows[i].key * floats + first);
    }
    return absl::OkStatus();
  };
  MEDLEY_RETURN_IF_ERROR(copy(table.rows.weights, columns, 0, table.host_weights));
  for (size_t s = 0; s < state_floats_; ++s) {
    MEDLEY_RETURN_IF_ERROR(copy(table.rows.state[s], columns * state_floats_, s * columns, table.host_state));
  }
  return absl::OkStatus();
}

int64_t ResidentTables::RowBytes(const Table& table, size_t rows) const {
  return static_cast<int64_t>(rows * static_cast<size_t>(table.spec.columns) * (1 + state_floats_) * sizeof(float));
}

ResidentTables::CacheCounts ResidentTables::Cached() const {
  base::MutexLock lock(mutex_);
  CacheCounts counts = counts_;
  for (const Table& table : tables_) {
    if (!table.slots.has_value()) continue;
    counts.bytes += static_cast<double>(RowBytes(table, static_cast<size_t>(table.rows.weights.size(0))));
  }
  return counts;
}

void ResidentTables::SayHitRate() const {
  const bool cached = std::ranges::any_of(tables_, [](const Table& table) { return table.slots.has_value(); });
  const int64_t all = counts_.hits + counts_.misses;
  if (!cached || all == 0) return;
  base::log::Info(
      "rows that steps found in their cache on the device",
      {{"percent", fmt::format("{:.1f}", 100.0 * static_cast<double>(counts_.hits) / static_cast<double>(all))},
       {"step", std::to_string(step_)}});
}

// The state of a row is together on the host: all of its first floats, then all of its second. Copies allocate nothing
// on the device.
absl::Status ResidentTables::ToHost(Table& table) {
  if (table.slots.has_value()) {
    table.asked = true;
    return WriteBack(table, table.slots->TakeChanged());
  }
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
  if (table.slots.has_value()) {
    table.slots->Unpin();
    if (std::exchange(table.asked, false)) table.slots->Clear();
    return absl::OkStatus();
  }
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
  for (Table& table : tables_) {
    table.asked = false;
    if (!table.slots.has_value()) table.host_weights = table.host_state = std::vector<float>();
  }
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
