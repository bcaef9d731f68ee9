// Holds the weights of an operation range and computes its forward and backward passes and updates, on the CPU.
//
// Backward passes are written by hand, without an autograd graph. A step allocates nothing, except that buffers grow to
// the largest micro-batch seen. BlockCompute documents the functions.
#pragma once

#include <absl/status/statusor.h>

#include <memory>

#include "common/model/forward.h"
#include "worker/model/compute_threads.h"
#include "worker/model/graph.h"
#include "worker/pipeline/block_compute.h"

namespace medley::worker {

class BlockModel final : public BlockCompute {
 public:
  // `seed` determines the initial weights, optimizer.initial_state the optimizer state. Errors: InvalidArgument for a
  // range that is empty or exceeds the graph. `threads` compute together with the calling thread, which must be one at
  // a time for all models that share them; null: the calling thread only. They do not change the results.
  // `kept_updates`: how many updates can be undone, >= 0; memory for one more version of the parameters each.
  static absl::StatusOr<std::unique_ptr<BlockModel>> Create(const Graph& graph, model::OperationRange range,
                                                            const Optimizer& optimizer, uint64_t seed,
                                                            std::shared_ptr<ComputeThreads> threads = nullptr,
                                                            int kept_updates = 1);
  ~BlockModel() override;

  const std::vector<BlockValue>& Inputs() const override;
  const std::vector<BlockValue>& Outputs() const override;
  bool IsLast() const override;
  const std::vector<ParameterSpec>& Tables() const override;

  void BeginStep(const StepShape& shape) override;
  void SetRows(int slot, int table, std::span<const float> rows) override;
  absl::StatusOr<Values> Forward(Pass pass, const BatchView& features, Values inputs) override;
  absl::StatusOr<Values> Backward(Pass pass, Values output_gradients) override;
  absl::StatusOr<Values> Infer(const BatchView& features, Values inputs) override;

  std::span<const float> RowGradients(int slot, int table) const override;
  std::span<float> Gradients() override;
  std::vector<DenseParameter> Parameters() override;
  double LossSum(int slot) const override;
  int64_t LossSamples(int slot) const override;

  absl::Status ApplyUpdate(const Optimizer& optimizer) override;
  absl::Status KeepAgreed() override;
  void ForgetAgreed() override;
  int64_t AppliedStep() const override;
  int64_t AgreedStep() const override;
  int64_t UndoLimit() const override;
  absl::Status UndoTo(int64_t step) override;
  void SetAppliedStep(int64_t step) override;

 private:
  class Rep;
  explicit BlockModel(std::unique_ptr<Rep> rep);
  std::unique_ptr<Rep> rep_;
};

}  // namespace medley::worker
