// What an AtenBlock holds: the calls of its operations, where their inputs are, and the micro-batches of open steps.
// Only for files of AtenBlock.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "worker/aten/aten_block.h"
#include "worker/aten/aten_block_pass.h"
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
        has_loss_(operations_.back().kind == worker::OperationKind::kLoss),
        recorder_(place_, "passes") {}

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
  RecordingCounts Recordings() const {
    RecordingCounts counts = recorder_.counts();
    return counts += store_->Recordings();
  }

 private:
  OpenStep& StepOf(int slot) {
    while (open_.size() <= static_cast<size_t>(slot)) open_.emplace_back().tables.Resize(table_specs_.size());
    return open_[static_cast<size_t>(slot)];
  }
  absl::Status BindStored();
  absl::Status BindPassed();
  // The parts of a pass: what the host gives, what is computed, and what the host gets. Only the second is recorded.
  absl::Status PlaceInputs(Micro& micro, Values inputs, bool training, const OpenTables& tables);
  absl::Status Compute(Micro& micro, RunContext context, const StepShape& shape);
  absl::Status PackOutputs(Micro& micro);
  absl::StatusOr<std::span<const float>> Logits(Micro& micro);  // samples x outputs
  absl::Status PlaceGradients(Micro& micro, Values output_gradients);
  // `again`: what autograd needs stays. Adds gradients to the store.
  absl::Status ComputeGradients(Micro& micro, const StepShape& shape, bool again);
  absl::Status GradientsToHost(OpenStep& open, Micro& micro);

  // Null: the pass is computed kernel by kernel.
  std::shared_ptr<RecordedPass> RecordedFor(const OpenStep& open, Pass pass, const BatchView& features);
  // Both by a recording, which is made if it is not there. Where it cannot be made, the first sets own.recorded to
  // null, and the second computes kernel by kernel.
  absl::Status ForwardRecorded(OpenStep& open, Micro& own, RunContext context, Values inputs);
  absl::Status BackwardRecorded(OpenStep& open, Micro& own);

  void ComputeLoss(Micro& micro, float scale) const;  // on a device
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
  Recorder recorder_;
  std::map<Recorder::Key, std::shared_ptr<RecordedPass>> passes_;
  Micro infer_;
  AlignedFloats logits_;
  at::Tensor class_weights_;  // of the loss, on a device
  std::vector<AlignedFloats> input_gradients_;
  std::vector<std::span<const float>> returned_gradients_;
};

}  // namespace medley::worker::aten
