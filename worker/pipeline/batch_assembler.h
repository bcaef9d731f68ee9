// Collects what one replica needs for a leased step: its samples, and the keys of the table rows that they use.
//
// Not thread-safe; the executor has one for its background thread and one for its own thread.
#pragma once

#include <vector>

#include "worker/data/dataset.h"
#include "worker/params/parameter_spec.h"
#include "worker/pipeline/key_indexer.h"
#include "worker/pipeline/reshard.h"
#include "worker/pipeline/sparse_parameters.h"
#include "worker/pipeline/step_executor.h"

namespace medley::worker {

// The data of one step for one replica.
struct PreparedStep {
  StepLease lease;
  Batch batch;                      // the samples of all micro-batches; ids are positions in tables[0].keys
  std::vector<SampleRange> micros;  // the range of each micro-batch within `batch`
  std::vector<TableKeys> tables;
  std::vector<std::vector<float>> rows;  // the pulled rows of each table
};

class BatchAssembler {
 public:
  // `place` and `data` must outlive the assembler. `tables` are the stage's; at most one, which all fields share.
  BatchAssembler(const StagePlace& place, const Dataset& data, std::vector<ParameterSpec> tables);

  // Fills all of `step` except `rows`. Errors: OutOfRange for a lease beyond the data.
  absl::Status Assemble(const StepLease& lease, PreparedStep& step);
  // Fills `step` with samples [first, first + count) of `data` in file order, as one micro-batch.
  void AssembleRange(const Dataset& data, int64_t first, int count, PreparedStep& step);

 private:
  void IndexKeys(PreparedStep& step);

  const StagePlace& place_;
  const Dataset& data_;
  const std::vector<ParameterSpec> tables_;
  KeyIndexer indexer_;
  std::vector<int64_t> indices_;
};

// The number of micro-batches of a step: 1 in a plan with a single stage, where more would not help.
int MicroBatches(const StagePlace& place, int count);

}  // namespace medley::worker
