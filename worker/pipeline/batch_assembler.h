// From a lease to what one replica needs of it: its samples, and the distinct rows of its tables.
//
// Not thread-safe; the executor has one for its background thread and one for itself.
#pragma once

#include <vector>

#include "worker/data/dataset.h"
#include "worker/params/parameter_spec.h"
#include "worker/pipeline/key_indexer.h"
#include "worker/pipeline/reshard.h"
#include "worker/pipeline/sparse_parameters.h"
#include "worker/pipeline/step_executor.h"

namespace medley::worker {

// A step as one replica sees it.
struct PreparedStep {
  StepLease lease;
  Batch batch;                      // the samples of all micro-batches; ids are positions in `keys`
  std::vector<SampleRange> micros;  // of each micro-batch, within `batch`
  std::vector<TableKeys> tables;
  std::vector<std::vector<float>> rows;  // of each table
};

class BatchAssembler {
 public:
  // `place` and `data` outlive it; `tables` are the stage's (one at most: all fields share it).
  BatchAssembler(const StagePlace& place, const Dataset& data, std::vector<ParameterSpec> tables);

  // Fills everything but `rows`. Errors: OutOfRange for a lease beyond the data.
  absl::Status Assemble(const StepLease& lease, PreparedStep& step);
  // Samples [first, first + count) of `data` in file order, as one micro-batch.
  void AssembleRange(const Dataset& data, int64_t first, int count, PreparedStep& step);

 private:
  void IndexKeys(PreparedStep& step);

  const StagePlace& place_;
  const Dataset& data_;
  const std::vector<ParameterSpec> tables_;
  KeyIndexer indexer_;
  std::vector<int64_t> indices_;
};

// Micro-batches of a step: one when there is a single stage (a flush pipeline of one stage gains
// nothing by them).
int MicroBatches(const StagePlace& place, int count);

}  // namespace medley::worker
