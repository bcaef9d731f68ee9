// The computation of one block of a built-in model through ATen with autograd, for units with a GPU: from the same
// graph as BlockModel (worker/model), which computes it on CPUs, with the same numbers but for the rounding of single
// operations.
//
// Parameters, their state, versions and updates are where the block computes (parameter_store.h). A step copies there
// the batch's ids, numerics, labels and weights, the rows of its tables and what other blocks give; back come the
// gradients of these rows, what other blocks take, and the sum of the losses.
//
// A function of BlockCompute that returns no status notes its error, which the next pass or ApplyUpdate returns.
#pragma once

#include <absl/status/statusor.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/model/forward.h"
#include "common/model/table_place.h"
#include "worker/aten/device_loss.h"
#include "worker/aten/device_mask.h"
#include "worker/aten/layer_calls.h"
#include "worker/aten/parameter_store.h"
#include "worker/aten/place.h"
#include "worker/aten/placed_rows.h"
#include "worker/aten/recorder.h"
#include "worker/aten/resident_tables.h"
#include "worker/aten/staged_rows.h"
#include "worker/aten/stored_block.h"
#include "worker/model/block_shape.h"
#include "worker/model/graph.h"
#include "worker/model/make_block.h"
#include "worker/pipeline/recorded_work.h"
#include "worker/pipeline/row_stager.h"

namespace medley::worker::aten {

class LayerBlock final : public StoredBlock,
                         public worker::TableKeeper,
                         public worker::RowStager,
                         public worker::RecordsWork {
 public:
  // Computes on settings.device; null: the CPU. Errors: InvalidArgument for a range that is empty or exceeds the graph;
  // those of the device.
  static absl::StatusOr<std::unique_ptr<LayerBlock>> Create(const worker::Graph& graph, model::OperationRange range,
                                                            const worker::BlockSettings& settings);

  const std::vector<worker::BlockValue>& Inputs() const override { return shape_.inputs; }
  const std::vector<worker::BlockValue>& Outputs() const override { return shape_.outputs; }
  bool IsLast() const override { return operations_.back().kind == worker::OperationKind::kLoss; }
  const std::vector<worker::ParameterSpec>& Tables() const override { return tables_; }

  void BeginStep(const worker::StepShape& shape) override;
  // On a device whose memory has room for them: as the plan says, or, where it says nothing, as fits.
  absl::StatusOr<std::shared_ptr<worker::WholeTables>> MakeTables(const worker::Optimizer& optimizer, uint64_t seed,
                                                                  int kept_updates) override;
  void SetKeys(int slot, int table, std::span<const uint64_t> keys) override;
  worker::TableCounts Counts() const override;
  void SetRows(int slot, int table, std::span<const float> rows) override;
  // On a device, if its host has the tables.
  absl::Status StageRows(int64_t step, int table, std::span<const float> rows) override;
  const StagedRows* staged() const { return staged_.get(); }  // null: on no device
  absl::StatusOr<worker::Values> Forward(worker::Pass pass, const worker::BatchView& features,
                                         worker::Values inputs) override;
  absl::StatusOr<worker::Values> Backward(worker::Pass pass, worker::Values output_gradients) override;
  absl::StatusOr<worker::Values> Infer(const worker::BatchView& features, worker::Values inputs) override;

  std::span<const float> RowGradients(int slot, int table) const override;
  double LossSum(int slot) const override;
  int64_t LossSamples(int slot) const override;
  absl::Status ApplyUpdate(const worker::Optimizer& optimizer) override;
  // Blocks without tables have those of passes, all those of updates.
  worker::RecordingCounts Recordings() const override;

 private:
  // Values for or from the host, one for each of the block's, and the memory that they are in.
  struct HostValues {
    std::vector<at::Tensor> tensors;
    std::vector<std::span<const float>> spans;
  };

  // What the host gives a pass, in the place of the block.
  struct Placed {
    at::Tensor ids, numerics;
    std::vector<at::Tensor> inputs;     // by input of the block
    PlacedLabels labels;                // in training
    std::vector<at::Tensor> gradients;  // by output of the block; undefined where it has none
  };
  struct RecordedPass;

  // One micro-batch from its forward to its backward pass. Leaves of autograd are what the block's gradients are of.
  struct Micro {
    worker::BatchView features;
    int64_t first_sample = 0;
    Placed placed;
    std::vector<at::Tensor> positions, rows;   // by table: of the gathered rows, and these, leaves
    std::vector<at::Tensor> parameters;        // leaves, by dense parameter
    std::vector<at::Tensor> inputs;            // leaves, by input of the block
    std::vector<at::Tensor> outputs;           // by output of the block
    at::Tensor result, result_gradient, loss;  // of the loss
    std::vector<at::Tensor> input_gradients;   // by input of the block
    HostValues returned;
    std::shared_ptr<RecordedPass> recorded;  // which has the tensors of this pass; null: they are here
    // What autograd needs, of which results are left.
    void ForgetGraph();
  };

  // Both passes of a micro-batch as the device recorded them: they read and write the tensors of `micro`.
  struct RecordedPass {
    Recorder::Key key;
    std::shared_ptr<RecordedMemory> memory;
    Micro micro;
    DrawCounters counters;
    std::unique_ptr<device::Recording> forward, backward;
  };

  // The keys of a step's rows of a table that the block has.
  struct Keys {
    std::vector<uint64_t> keys;
    at::Tensor places;  // ResidentTables::Gathered
    bool gathered = false;
  };

  struct OpenStep {
    worker::StepShape shape;
    std::vector<Keys> keys;  // by table
    std::vector<Micro> micros;
    int backward_passes = 0;
    mutable std::vector<PlacedRows> rows;  // by table
    mutable at::Tensor loss;               // what is not yet in loss_sum
    mutable double loss_sum = 0;
    int64_t loss_samples = 0;
  };

  LayerBlock(const worker::Graph& graph, model::OperationRange range, const worker::BlockSettings& settings);

  ParameterStore& store() const override { return *store_; }
  OpenStep& StepOf(int slot);
  absl::Status KeepFixedRows();
  // The rows of a step where the block has the tables; `step` 0: for inference.
  absl::Status GatherRows(OpenStep& open, int64_t version, int64_t step);
  // The parts of a pass: what the host gives, and what is computed. Only the second is recorded. `counters`: of the
  // draws, or null.
  absl::Status PlaceInputs(Micro& micro, worker::Values inputs, bool training);
  absl::Status Compute(Micro& micro, const OpenStep& open, bool training, const DrawCounters* counters);
  absl::Status PlaceGradients(Micro& micro, worker::Values output_gradients);
  // `again`: what autograd needs stays.
  absl::Status ComputeGradients(OpenStep& open, Micro& micro, bool again);
  // Null: the pass is computed kernel by kernel.
  std::shared_ptr<RecordedPass> RecordedFor(const OpenStep& open, worker::Pass pass, const worker::BatchView& features);
  // Both by a recording, which is made if it is not there. Where it cannot be made, the first sets own.recorded to
  // null, and the second computes kernel by kernel.
  absl::Status ForwardRecorded(OpenStep& open, Micro& own, worker::Values inputs);
  absl::Status BackwardRecorded(OpenStep& open, Micro& own);
  at::Tensor ComputeLayer(size_t index, Micro& micro, const OpenStep& open, const std::vector<at::Tensor>& inputs,
                          bool training);
  // The values of a parameter for a pass: with `training` a leaf of autograd.
  at::Tensor Parameter(size_t dense, Micro& micro, const OpenStep& open, bool training);
  absl::StatusOr<worker::Values> ToHost(const std::vector<at::Tensor>& tensors, HostValues& host) const;
  absl::StatusOr<worker::Values> ForwardPass(worker::Pass pass, const worker::BatchView& features,
                                             worker::Values inputs);
  absl::StatusOr<worker::Values> BackwardPass(worker::Pass pass, worker::Values output_gradients);
  absl::StatusOr<worker::Values> InferPass(const worker::BatchView& features, worker::Values inputs);

  const worker::SampleShape sample_shape_;
  const std::vector<worker::Operation> operations_;
  const int first_;  // index of the first operation in the model
  const uint64_t seed_;
  const worker::BlockShape shape_;
  const bool reads_numerics_;
  const std::vector<worker::ParameterSpec> tables_, dense_;
  const std::shared_ptr<device::Device> device_;
  const Place place_;
  const std::unique_ptr<ParameterStore> store_;
  std::vector<size_t> first_dense_, table_of_;  // by operation: of its first parameter, or its table
  std::vector<bool> has_fixed_rows_;            // by dense parameter: the first ones do not change
  std::vector<LayerConstants> constants_;       // by operation
  std::vector<OpenStep> open_;                  // by slot
  Recorder recorder_;
  std::map<Recorder::Key, std::shared_ptr<RecordedPass>> passes_;
  Micro infer_;
  const model::Tables planned_;               // where the plan has the tables
  std::string instead_;                       // why they are elsewhere
  std::shared_ptr<ResidentTables> resident_;  // null: the rows come from the host
  // Rows that come from the host, and bytes that are copied for them.
  std::atomic<int64_t> host_rows_ = 0, host_bytes_in_ = 0;
  mutable std::atomic<int64_t> host_bytes_out_ = 0;
  std::unique_ptr<StagedRows> staged_;  // null: on no device
  HostValues input_gradients_;
  at::Tensor class_weights_;  // of the loss
  absl::Status rows_failed_;  // of the last SetRows
};

}  // namespace medley::worker::aten
