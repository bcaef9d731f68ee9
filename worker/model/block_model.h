// Holds the weights of an operation range and computes its forward and backward passes and updates, on the CPU.
//
// Backward passes are written by hand, without an autograd graph. A step allocates nothing, except that buffers grow to
// the largest micro-batch seen. BlockCompute documents the functions.
#pragma once

#include <absl/status/statusor.h>

#include <memory>

#include "common/model/execution_plan.h"
#include "worker/model/compute_threads.h"
#include "worker/model/graph.h"
#include "worker/pipeline/block_compute.h"

namespace medley::worker {

class BlockModel final : public BlockCompute {
 public:
  // `seed` determines the initial weights, optimizer.initial_state the optimizer state. Errors: InvalidArgument for a
  // range that is empty or exceeds the graph. `threads` compute together with the calling thread, which must be one at
  // a time for all models that share them; null: the calling thread only. They do not change the results.
  static absl::StatusOr<std::unique_ptr<BlockModel>> Create(const Graph& graph, model::OperationRange range,
                                                            const Optimizer& optimizer, uint64_t seed,
                                                            std::shared_ptr<ComputeThreads> threads = nullptr);
  ~BlockModel() override;

  int InputWidth() const override;
  int OutputWidth() const override;
  bool IsLast() const override;
  const std::vector<ParameterSpec>& Tables() const override;

  void BeginStep(const StepShape& shape) override;
  void SetRows(int table, std::span<const float> rows) override;
  absl::StatusOr<std::span<const float>> Forward(int micro, const BatchView& features,
                                                 std::span<const float> input) override;
  absl::StatusOr<std::span<const float>> Backward(int micro, std::span<const float> output_gradient) override;
  absl::StatusOr<std::span<const float>> Infer(const BatchView& features, std::span<const float> input) override;

  std::span<const float> RowGradients(int table) const override;
  std::span<float> Gradients() override;
  std::vector<DenseParameter> Parameters() override;
  double LossSum() const override;
  int64_t LossSamples() const override;

  absl::Status ApplyUpdate(const Optimizer& optimizer) override;
  int64_t AppliedStep() const override;
  int64_t UndoLimit() const override;
  absl::Status UndoTo(int64_t step) override;
  void SetAppliedStep(int64_t step) override;

 private:
  class Rep;
  explicit BlockModel(std::unique_ptr<Rep> rep);
  std::unique_ptr<Rep> rep_;
};

}  // namespace medley::worker
