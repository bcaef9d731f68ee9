// What an AtenBlock holds: the calls of its operations, where their inputs are, and the micro-batches of open steps.
// Only for aten_block.cc and aten_block_calls.cc.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "worker/aten/aten_block.h"
#include "worker/aten/call_list.h"
#include "worker/aten/open_tables.h"
#include "worker/aten/parameter_store.h"
#include "worker/aten/place.h"
#include "worker/aten/precision.h"
#include "worker/model/aligned_floats.h"
#include "worker/model/block_shape.h"

namespace medley::worker::aten {

// A parameter or statistic: where its values are, and what the calls see.
struct Bound {
  int slot = 0;
  size_t dense = 0;  // of the DenseStore
  ParameterRole role = ParameterRole::kTrained;
  at::ScalarType type = at::kFloat;
  std::vector<int64_t> sizes;
  int changed = -1;  // statistic: the slot of its new value; -1: its own, which is changed in place
};

struct Constant {
  int slot = 0;
  at::Tensor tensor;
};

struct FromBatch {
  int slot = 0;
  worker::InputSlice slice;
  at::ScalarType type = at::kFloat;
};

// A tensor that comes from, or goes to, another block.
struct Passed {
  int slot = 0;
  size_t value = 0;   // of the block's inputs or outputs
  int64_t first = 0;  // of its floats within a row
  const cut::Crossing* crossing = nullptr;
};

// One micro-batch from its forward to its backward pass.
struct Micro {
  BatchView features;
  std::vector<at::Tensor> parameters;  // by Bound; undefined where it has no gradient
  std::vector<at::Tensor> rows;        // by table
  std::vector<at::Tensor> inputs;      // by Passed; undefined where it has no gradient
  std::vector<at::Tensor> outputs;     // by Passed
  std::vector<at::Tensor> changes;     // by Bound: of statistics, else undefined
  at::Tensor result;
  AlignedFloats loss_gradient;                   // on the host
  at::Tensor result_gradient;                    // on a device: of the loss, as `result`
  std::vector<AlignedFloats> packed;             // by output of the block
  std::vector<std::span<const float>> returned;  // by output of the block
};

struct OpenStep {
  StepShape shape;
  std::vector<Micro> micros;
  OpenTables tables;
  double loss_sum = 0;
  at::Tensor loss;  // on a device: what is not yet in loss_sum
  int64_t loss_samples = 0;
};

class AtenBlock::Rep {
 public:
  Rep(const Graph& graph, model::OperationRange range, const Options& options)
      : cut_(graph.imported->cut),
        imported_(graph.imported),
        operations_(graph.operations.begin() + range.first, graph.operations.begin() + range.end),
        range_(range),
        seed_(options.seed),
        shape_(ShapeOfBlock(graph, range)),
        table_specs_(ParametersOf(operations_, true)),
        place_(options.device),
        store_(MakeParameterStore(ParametersOf(operations_, false), options.optimizer, options.seed,
                                  options.kept_updates, place_)),
        precision_(PrecisionOn(place_.device().type(), options.precision, ProcessorHasBfloat16())),
        has_loss_(operations_.back().kind == worker::OperationKind::kLoss) {}

  absl::Status Prepare();

  const BlockShape& shape() const { return shape_; }
  bool has_loss() const { return has_loss_; }
  ParameterStore& store() const { return *store_; }
  const std::vector<ParameterSpec>& tables() const { return table_specs_; }
  int64_t SamplesOf(Pass pass) const {
    return open_.at(static_cast<size_t>(pass.slot)).micros.at(static_cast<size_t>(pass.micro)).features.samples;
  }
  const OpenStep& step(int slot) const { return open_.at(static_cast<size_t>(slot)); }

  void BeginStep(const StepShape& shape) {
    OpenStep& open = StepOf(shape.slot);
    open.shape = shape;
    open.loss_sum = 0;
    open.loss = at::Tensor();
    open.loss_samples = 0;
    if (open.micros.size() < static_cast<size_t>(shape.micro_batches)) {
      open.micros.resize(static_cast<size_t>(shape.micro_batches));
    }
    store_->ForgetGradients(shape.step);
  }

  void SetRows(int slot, int table, std::span<const float> rows) {
    StepOf(slot).tables.Set(static_cast<size_t>(table), rows);  // for Infer also before the first step
  }

  absl::StatusOr<Values> Forward(Pass pass, const BatchView& features, Values inputs);
  absl::StatusOr<Values> Backward(Pass pass, Values output_gradients);
  absl::StatusOr<Values> Infer(const BatchView& features, Values inputs);

  // Copies what a device has of it.
  absl::StatusOr<double> LossSum(int slot);

 private:
  OpenStep& StepOf(int slot) {
    while (open_.size() <= static_cast<size_t>(slot)) open_.emplace_back().tables.Resize(table_specs_.size());
    return open_[static_cast<size_t>(slot)];
  }
  absl::Status BindStored();
  absl::Status BindPassed();
  absl::Status Run(Micro& micro, const BatchView& features, Values inputs, RunContext context, int64_t version,
                   const OpenTables& tables);
  absl::Status PackOutputs(Micro& micro);
  absl::StatusOr<std::span<const float>> Logits(Micro& micro);  // samples x outputs
  absl::Status AddLoss(OpenStep& open, Micro& micro);           // on a device
  static float Scale(const StepShape& shape) { return 1.0F / static_cast<float>(std::max(1, shape.global_samples)); }
  absl::StatusOr<std::vector<int64_t>> SizesOf(const Passed& passed, int64_t samples) const {
    return cut::SizesOf(*cut_, passed.crossing->value, samples);
  }

  const std::shared_ptr<const cut::Cut> cut_;
  const std::shared_ptr<const worker::ImportedModel> imported_;
  const std::vector<worker::Operation> operations_;
  const model::OperationRange range_;
  const uint64_t seed_;
  const BlockShape shape_;
  const std::vector<ParameterSpec> table_specs_;
  const Place place_;
  const std::unique_ptr<ParameterStore> store_;
  const Precision precision_;
  const bool has_loss_;
  CallList calls_;
  std::vector<Bound> bound_;
  std::vector<int> table_slots_;  // by table
  std::vector<Constant> constants_;
  std::vector<FromBatch> from_batch_;
  std::vector<Passed> inputs_, outputs_;
  std::optional<Passed> result_;  // what the loss takes
  bool result_passed_ = false;    // it comes from another block
  std::vector<OpenStep> open_;    // by slot
  Micro infer_;
  AlignedFloats logits_;
  at::Tensor class_weights_;  // of the loss, on a device
  std::vector<AlignedFloats> input_gradients_;
  std::vector<std::span<const float>> returned_gradients_;
};

}  // namespace medley::worker::aten
