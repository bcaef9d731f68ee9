// The computation of one block of a model that was exported from PyTorch: calls through ATen with autograd.
//
// Implements BlockCompute for a range of the operations of a Graph that has `imported` (worker/model/graph.h), the loss
// included. On the CPU parameters live in the flat buffers of DenseStore, to which tensors only refer, so that
// versions, undo, checkpoints and reductions are those of every model; on a device they live in its memory
// (parameter_store.h). The state of batch norms is a statistic: what a step changes is its "gradient", the mean over
// the samples of all replicas, so a step changes it once, whatever the number of micro-batches
// (docs/design/exported-models.md).
//
// A table's rows (cut::Operation::table) are those that SetRows gave, as a leaf of autograd; the whole numbers of its
// input are positions among them. Their gradients are added on the host.
//
// A block's value packs what its operation gives to others (cut::Operation::crossings): for each sample, its floats one
// after the other.
#pragma once

#include <absl/status/statusor.h>

#include <memory>

#include "common/model/forward.h"
#include "worker/aten/stored_block.h"
#include "worker/device/device.h"
#include "worker/model/graph.h"
#include "worker/model/make_block.h"
#include "worker/pipeline/recorded_work.h"

namespace medley::worker::aten {

class AtenBlock final : public StoredBlock, public worker::RecordsWork {
 public:
  struct Options {
    worker::Optimizer optimizer;             // its initial_state
    uint64_t seed = 0;                       // of dropout
    int threads = 1;                         // of LibTorch, for all blocks of the process
    int kept_updates = 1;                    // >= 0: updates that can be undone
    std::shared_ptr<device::Device> device;  // that computes; null: the CPU
    worker::Precision precision = worker::Precision::kFloat32;
  };

  // Errors: InvalidArgument for a range that the graph lacks; Unimplemented for an operator that LibTorch lacks, with
  // the module that uses it.
  static absl::StatusOr<std::unique_ptr<AtenBlock>> Create(const worker::Graph& graph, model::OperationRange range,
                                                           const Options& options);
  ~AtenBlock() override;

  const std::vector<worker::BlockValue>& Inputs() const override;
  const std::vector<worker::BlockValue>& Outputs() const override;
  bool IsLast() const override;
  const std::vector<worker::ParameterSpec>& Tables() const override;

  void BeginStep(const worker::StepShape& shape) override;
  void SetRows(int slot, int table, std::span<const float> rows) override;
  absl::StatusOr<worker::Values> Forward(worker::Pass pass, const worker::BatchView& features,
                                         worker::Values inputs) override;
  absl::StatusOr<worker::Values> Backward(worker::Pass pass, worker::Values output_gradients) override;
  absl::StatusOr<worker::Values> Infer(const worker::BatchView& features, worker::Values inputs) override;

  std::span<const float> RowGradients(int slot, int table) const override;
  double LossSum(int slot) const override;
  int64_t LossSamples(int slot) const override;
  worker::RecordingCounts Recordings() const override;

 private:
  class Rep;
  explicit AtenBlock(std::unique_ptr<Rep> rep);
  ParameterStore& store() const override;
  std::unique_ptr<Rep> rep_;
};

}  // namespace medley::worker::aten
