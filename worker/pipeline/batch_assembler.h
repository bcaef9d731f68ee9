// Collects what one device needs for a leased step: its samples, and the keys of the table rows that they use.
//
// Not thread-safe; the executor has one for its background thread and one for its own thread.
#pragma once

#include <stop_token>
#include <vector>

#include "common/base/clock.h"
#include "common/program/samples.h"
#include "worker/data/dataset.h"
#include "worker/params/parameter_spec.h"
#include "worker/pipeline/batch_share.h"
#include "worker/pipeline/key_indexer.h"
#include "worker/pipeline/sparse_parameters.h"
#include "worker/pipeline/step.h"

namespace medley::worker {

using program::SampleRange;

// The data of one step for one device.
struct PreparedStep {
  StepLease lease;
  base::SteadyTime assembled{};  // when `batch` was complete
  base::nanoseconds waited{0};   // for how long the step was held up until then
  Batch batch;  // the samples of all micro-batches; the ids of a table's fields are positions among its keys
  std::vector<std::vector<SampleRange>> micros;  // by seat: the range of each micro-batch within `batch`
  std::vector<TableKeys> tables;
  std::vector<std::vector<float>> rows;  // the pulled rows of each table
};

// A table of the device, and the seat in whose samples its keys are.
struct SeatTable {
  ParameterSpec spec;
  size_t seat = 0;
};

class BatchAssembler {
 public:
  // `data` must outlive the assembler. `tables` are the device's; no two have a field in common.
  BatchAssembler(int micro_batches, const BatchShare& share, const Dataset& data, std::vector<SeatTable> tables);

  // Fills all of `step` except `rows`. Errors: OutOfRange for a lease beyond the data; those of Dataset::GatherAt.
  absl::Status Assemble(const StepLease& lease, const std::stop_token& stop, PreparedStep& step);
  // Fills `step` with the device's part of samples [first, first + count) of `data` in file order, as one micro-batch.
  void AssembleRange(const Dataset& data, int64_t first, int count, PreparedStep& step);

 private:
  // Adds the device's part of `whole` as one micro-batch; `row` maps a sample of it to a row of the data.
  template <typename Row>
  void AddMicro(SampleRange whole, const Row& row, PreparedStep& step);
  void IndexKeys(PreparedStep& step);
  // Makes room for drawn ids behind those of each sample.
  void Widen(Batch& batch) const;
  // Sets the drawn ids of tables: draw(table, sample of the batch, ids).
  template <typename Draw>
  void SetDrawn(const Draw& draw, Batch& batch) const;

  const int micro_batches_;
  const BatchShare share_;
  const Dataset& data_;
  const std::vector<SeatTable> tables_;
  KeyIndexer indexer_;
  std::vector<int64_t> indices_;
  std::vector<int32_t> ids_;  // of one table
  std::vector<size_t> rows_;  // of one table within the batch
};

}  // namespace medley::worker
