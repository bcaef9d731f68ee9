#include "worker/pipeline/batch_assembler.h"

#include <algorithm>

#include "common/base/status.h"
#include "worker/data/sample_order.h"
#include "worker/pipeline/drawn_rows.h"

namespace medley::worker {

BatchAssembler::BatchAssembler(int micro_batches, const BatchShare& share, const Dataset& data,
                               std::vector<SeatTable> tables)
    : micro_batches_(micro_batches), share_(share), data_(data), tables_(std::move(tables)) {}

// Seats with the same part share its samples.
template <typename Row>
void BatchAssembler::AddMicro(SampleRange whole, const Row& row, PreparedStep& step) {
  step.micros.resize(share_.seats.size());
  for (size_t seat = 0; seat < share_.seats.size(); ++seat) {
    const auto same = std::ranges::find(share_.seats, share_.seats[seat]) - share_.seats.begin();
    if (static_cast<size_t>(same) < seat) {
      step.micros[seat].push_back(step.micros[static_cast<size_t>(same)].back());
      continue;
    }
    const SampleRange mine = program::ShareOf(whole.count, share_.seats[seat], 0);
    step.micros[seat].push_back({static_cast<int>(indices_.size()), mine.count});
    for (int i = 0; i < mine.count; ++i) indices_.push_back(row(whole.first + mine.first + i));
  }
}

void BatchAssembler::Widen(Batch& batch) const {
  const auto fields = static_cast<size_t>(batch.shape.fields), wide = fields + static_cast<size_t>(share_.drawn);
  batch.ids.resize(static_cast<size_t>(batch.samples) * wide);
  for (auto sample = static_cast<size_t>(batch.samples); sample-- > 0;) {
    std::copy_backward(batch.ids.data() + sample * fields, batch.ids.data() + (sample + 1) * fields,
                       batch.ids.data() + sample * wide + fields);
  }
  batch.shape.fields += share_.drawn;
}

template <typename Draw>
void BatchAssembler::SetDrawn(const Draw& draw, Batch& batch) const {
  if (share_.drawn == 0) return;
  Widen(batch);
  for (const SeatTable& table : tables_) {
    if (table.spec.drawn == 0) continue;
    const auto first = static_cast<size_t>(table.spec.first_field + table.spec.fields - table.spec.drawn);
    for (size_t sample = 0; sample < static_cast<size_t>(batch.samples); ++sample) {
      int32_t* const ids = batch.ids.data() + sample * static_cast<size_t>(batch.shape.fields) + first;
      draw(table.spec, sample, {ids, static_cast<size_t>(table.spec.drawn)});
    }
  }
}

absl::Status BatchAssembler::Assemble(const StepLease& lease, const std::stop_token& stop, PreparedStep& step) {
  if (lease.first < 0 || lease.count <= 0 || lease.first + lease.count > data_.rows()) {
    return base::OutOfRange("the lease of step {} has samples [{}, {}), but the data has {}", lease.step, lease.first,
                            lease.first + lease.count, data_.rows());
  }
  const SampleOrder order(data_.rows(), share_.seed, share_.blocks, lease.data_epoch);
  step.lease = lease;
  step.micros.clear();
  indices_.clear();
  for (int micro = 0; micro < micro_batches_; ++micro) {
    AddMicro(
        program::MicroBatch(lease.count, micro, micro_batches_), [&](int i) { return lease.first + i; }, step);
  }
  MEDLEY_RETURN_IF_ERROR(data_.GatherAt(order, indices_, share_.parts, stop, step.batch));
  SetDrawn(
      [&](const ParameterSpec& table, size_t sample, std::span<int32_t> ids) {
        DrawRows({share_.seed, table.operation, table.rows, lease.data_epoch}, indices_[sample], ids);
      },
      step.batch);
  IndexKeys(step);
  return absl::OkStatus();
}

void BatchAssembler::AssembleRange(const Dataset& data, int64_t first, int count, PreparedStep& step) {
  step.micros.clear();
  indices_.clear();
  AddMicro(
      {0, count}, [&](int i) { return first + i; }, step);
  data.Gather(indices_, step.batch, share_.parts);
  // Predictions need none: the sample's own id stands for them, whose row is pulled in any case.
  SetDrawn([&](const ParameterSpec&, size_t, std::span<int32_t> ids) { std::ranges::fill(ids, *(ids.data() - 1)); },
           step.batch);
  IndexKeys(step);
}

// Replaces the ids of each table's fields by their positions among its keys, in the samples of its seat.
void BatchAssembler::IndexKeys(PreparedStep& step) {
  step.tables.resize(tables_.size());
  for (size_t i = 0; i < tables_.size(); ++i) {
    const ParameterSpec& spec = tables_[i].spec;
    step.tables[i].operation = spec.operation;
    step.tables[i].columns = static_cast<int>(spec.columns);
    std::vector<int32_t>& ids = step.batch.ids;
    const size_t fields = static_cast<size_t>(step.batch.shape.fields);
    const size_t count = static_cast<size_t>(spec.fields);
    rows_.clear();
    for (const SampleRange& micro : step.micros[tables_[i].seat]) {
      for (int row = micro.first; row < micro.end(); ++row) rows_.push_back(static_cast<size_t>(row));
    }
    if (count == fields && rows_.size() == indices_.size()) {
      indexer_.Index(ids, step.tables[i].keys);
      continue;
    }
    const auto first_of = [&](size_t row) {
      return ids.begin() + static_cast<ptrdiff_t>(row * fields + static_cast<size_t>(spec.first_field));
    };
    ids_.clear();
    for (const size_t row : rows_)
      ids_.insert(ids_.end(), first_of(row), first_of(row) + static_cast<ptrdiff_t>(count));
    indexer_.Index(ids_, step.tables[i].keys);
    auto next = ids_.begin();
    for (const size_t row : rows_) {
      std::copy_n(next, count, first_of(row));
      next += static_cast<ptrdiff_t>(count);
    }
  }
}

}  // namespace medley::worker
