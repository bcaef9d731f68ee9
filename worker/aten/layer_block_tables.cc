// The rows of a LayerBlock: from the host, or of tables that it has.
#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "common/base/log.h"
#include "common/base/status.h"
#include "common/program/memory.h"
#include "common/program/table_place.h"
#include "worker/aten/caught.h"
#include "worker/aten/layer_block.h"

namespace medley::worker::aten {

absl::StatusOr<std::shared_ptr<WholeTables>> LayerBlock::MakeTables(const Optimizer& optimizer, uint64_t seed,
                                                                    int kept_updates) {
  if (!place_.apart()) return nullptr;
  MEDLEY_ASSIGN_OR_RETURN(const device::DeviceMemory memory, device_->Memory());
  const double bytes = ResidentTables::Bytes(tables_, optimizer), free = static_cast<double>(memory.free);
  const program::PlacedTables placed = program::PlaceTables(planned_, bytes, free);
  if (planned_.OnDevice() && placed.place != planned_.place) {
    const double needed =
        planned_.place == model::TablePlace::kDevice ? bytes : static_cast<double>(planned_.cache_bytes);
    instead_ =
        fmt::format("The plan has {} of {} in the memory of the GPU, of which {} are free: {}",
                    planned_.place == model::TablePlace::kDevice ? "embedding tables" : "a cache of embedding rows",
                    program::SizeText(needed), program::SizeText(free),
                    placed.place == model::TablePlace::kCache
                        ? fmt::format("it has a cache of {} instead", program::SizeText(placed.cache_bytes))
                        : std::string("the rows stay in the memory of the host"));
    base::log::Warn(instead_);
  }
  if (placed.place == model::TablePlace::kHost) return nullptr;
  const bool cached = placed.place == model::TablePlace::kCache;
  MEDLEY_ASSIGN_OR_RETURN(resident_,
                          ResidentTables::Create(tables_, optimizer, seed, kept_updates, place_, placed.cache_bytes));
  base::log::Info(cached ? "embedding tables are in the host's memory, rows that are used often in the device's"
                         : "embedding tables are in the memory of the device",
                  {{"tables", std::to_string(tables_.size())},
                   {"bytes", fmt::format("{:.0f}", cached ? placed.cache_bytes : bytes)}});
  return resident_;
}

TableCounts LayerBlock::Counts() const {
  TableCounts counts;
  if (!place_.apart() || tables_.empty()) return counts;
  counts.instead = instead_;
  if (resident_ == nullptr) {
    counts.place = model::TablePlace::kHost;
    counts.used_rows = host_rows_;
    counts.bytes_in = host_bytes_in_;
    counts.bytes_out = host_bytes_out_;
    return counts;
  }
  const ResidentTables::CacheCounts cached = resident_->Cached();
  counts.place = cached.bytes > 0 ? model::TablePlace::kCache : model::TablePlace::kDevice;
  counts.used_rows = cached.hits + cached.misses;
  counts.found_rows = cached.hits;
  counts.bytes_in = cached.bytes_in;
  counts.bytes_out = cached.bytes_out;
  return counts;
}

void LayerBlock::SetKeys(int slot, int table, std::span<const uint64_t> keys) {
  if (resident_ == nullptr) return;
  Keys& to = StepOf(slot).keys.at(static_cast<size_t>(table));
  to.keys.assign(keys.begin(), keys.end());
  to.gathered = false;
  to.places = at::Tensor();
  StepOf(slot).rows.at(static_cast<size_t>(table)).SetPlaced(at::Tensor());
}

absl::Status LayerBlock::GatherRows(OpenStep& open, int64_t version, int64_t step) {
  MEDLEY_RETURN_IF_ERROR(std::exchange(rows_failed_, absl::OkStatus()));
  for (size_t t = 0; resident_ != nullptr && t < tables_.size(); ++t) {
    Keys& keys = open.keys[t];
    if (std::exchange(keys.gathered, true)) continue;
    MEDLEY_ASSIGN_OR_RETURN(const ResidentTables::Gathered gathered, resident_->Gather(t, keys.keys, version, step));
    keys.places = gathered.places;
    open.rows[t].SetPlaced(gathered.rows);
  }
  return absl::OkStatus();
}

void LayerBlock::SetRows(int slot, int table, std::span<const float> rows) {
  if (resident_ != nullptr) return;
  const auto index = static_cast<size_t>(table);
  host_rows_ += std::ssize(rows) / std::max<int64_t>(1, tables_[index].columns);
  host_bytes_in_ += static_cast<int64_t>(rows.size_bytes());
  rows_failed_.Update(Caught("rows of a step", [&]() -> absl::Status {
    OpenStep& open = StepOf(slot);
    // With several open steps a buffer would be used by more than one.
    if (staged_ != nullptr && open_.size() == 1) {
      MEDLEY_ASSIGN_OR_RETURN(const at::Tensor there, staged_->Take(open.shape.step, index, rows));
      if (there.defined()) {
        open.rows[index].SetThere(there, rows.size());
        return absl::OkStatus();
      }
    }
    return open.rows.at(index).Set(place_, rows, tables_[index].columns);
  }));
}

absl::Status LayerBlock::StageRows(int64_t step, int table, std::span<const float> rows) {
  if (staged_ == nullptr || resident_ != nullptr) return absl::OkStatus();
  return Caught("rows of a coming step", [&] { return staged_->Stage(step, static_cast<size_t>(table), rows); });
}

std::span<const float> LayerBlock::RowGradients(int slot, int table) const {
  const OpenStep& open = open_.at(static_cast<size_t>(slot));
  const auto index = static_cast<size_t>(table);
  PlacedRows& rows = open.rows.at(index);
  if (resident_ != nullptr) {
    resident_->SetGradients(open.shape.step, index, open.keys[index].places, rows.sums());
    return {};
  }
  // The last backward pass has copied them, unless the step has fewer passes than micro-batches.
  const absl::Status copied = Caught("gradients of rows", [&] { return rows.GradientsToHost(place_); });
  if (!copied.ok()) failure_ = copied;
  host_bytes_out_ += static_cast<int64_t>(rows.host_gradients().size_bytes());
  return rows.host_gradients();
}

}  // namespace medley::worker::aten
