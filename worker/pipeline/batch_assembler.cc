#include "worker/pipeline/batch_assembler.h"

#include <algorithm>

#include "common/base/status.h"
#include "worker/data/permutation.h"

namespace medley::worker {

BatchAssembler::BatchAssembler(const program::Program& program, const BatchShare& share, const Dataset& data,
                               std::vector<ParameterSpec> tables)
    : program_(program), share_(share), data_(data), tables_(std::move(tables)) {}

absl::Status BatchAssembler::Assemble(const StepLease& lease, PreparedStep& step) {
  if (lease.first < 0 || lease.count <= 0 || lease.first + lease.count > data_.rows()) {
    return base::OutOfRange("the lease of step {} has samples [{}, {}), but the data has {}", lease.step, lease.first,
                            lease.first + lease.count, data_.rows());
  }
  const Permutation order(data_.rows(), share_.seed, lease.data_epoch);
  const program::Layout& layout = program_.layouts[static_cast<size_t>(share_.layout)];
  step.lease = lease;
  step.micros.clear();
  indices_.clear();
  for (int micro = 0; micro < program_.micro_batches; ++micro) {
    const SampleRange whole = program::MicroBatch(lease.count, micro, program_.micro_batches);
    const SampleRange mine = program::ShareOf(whole.count, layout.cuts, share_.replica);
    step.micros.push_back({static_cast<int>(indices_.size()), mine.count});
    for (int i = 0; i < mine.count; ++i) indices_.push_back(order(lease.first + whole.first + mine.first + i));
  }
  data_.Gather(indices_, step.batch);
  IndexKeys(step);
  return absl::OkStatus();
}

void BatchAssembler::AssembleRange(const Dataset& data, int64_t first, int count, PreparedStep& step) {
  indices_.clear();
  for (int i = 0; i < count; ++i) indices_.push_back(first + i);
  step.micros = {{0, count}};
  data.Gather(indices_, step.batch);
  IndexKeys(step);
}

void BatchAssembler::IndexKeys(PreparedStep& step) {
  step.tables.resize(tables_.size());
  for (size_t i = 0; i < tables_.size(); ++i) {
    step.tables[i].operation = tables_[i].operation;
    step.tables[i].columns = static_cast<int>(tables_[i].columns);
    std::vector<int32_t>& ids = step.batch.ids;
    const size_t fields = static_cast<size_t>(step.batch.shape.fields);
    const size_t count = static_cast<size_t>(tables_[i].fields);
    if (count == fields) {
      indexer_.Index(ids, step.tables[i].keys);
      continue;
    }
    ids_.clear();
    for (size_t at = static_cast<size_t>(tables_[i].first_field); at < ids.size(); at += fields) {
      ids_.insert(ids_.end(), ids.begin() + static_cast<ptrdiff_t>(at),
                  ids.begin() + static_cast<ptrdiff_t>(at + count));
    }
    indexer_.Index(ids_, step.tables[i].keys);
    size_t next = 0;
    for (size_t at = static_cast<size_t>(tables_[i].first_field); at < ids.size(); at += fields) {
      std::copy_n(ids_.begin() + static_cast<ptrdiff_t>(next), count, ids.begin() + static_cast<ptrdiff_t>(at));
      next += count;
    }
  }
}

}  // namespace medley::worker
