#include "worker/aten/layer_block.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <limits>
#include <string>
#include <utility>

#include "common/base/status.h"
#include "common/model/operation_range.h"
#include "worker/aten/caught.h"
#include "worker/aten/freed_memory.h"
#include "worker/aten/precision.h"

namespace medley::worker::aten {

LayerBlock::LayerBlock(const Graph& graph, model::OperationRange range, const BlockSettings& settings)
    : sample_shape_(graph.shape),
      operations_(graph.operations.begin() + range.first, graph.operations.begin() + range.end),
      first_(range.first),
      seed_(settings.seed),
      shape_(ShapeOfBlock(graph, range)),
      reads_numerics_(std::ranges::any_of(operations_, &Operation::reads_numerics)),
      tables_(ParametersOf(operations_, true)),
      dense_(ParametersOf(operations_, false)),
      device_(settings.device),
      place_(settings.device),
      store_(MakeParameterStore(dense_, settings.optimizer, settings.seed, settings.kept_updates, place_)),
      recorder_(place_, "passes"),
      planned_(settings.tables) {
  has_fixed_rows_.resize(dense_.size(), false);
  size_t dense = 0, table = 0;
  for (const Operation& operation : operations_) {
    first_dense_.push_back(dense);
    table_of_.push_back(table);
    for (const ParameterSpec& spec : operation.parameters) ++(spec.sparse ? table : dense);
    if (operation.pass_first) has_fixed_rows_[first_dense_.back()] = true;
  }
  std::vector<int64_t> columns;
  for (const ParameterSpec& spec : tables_) columns.push_back(spec.columns);
  if (!tables_.empty()) recorder_.Stop("the rows of its tables are at another place in each step");
  if (place_.apart() && !columns.empty()) staged_ = std::make_unique<StagedRows>(device_, place_, std::move(columns));
}

absl::StatusOr<std::unique_ptr<LayerBlock>> LayerBlock::Create(const Graph& graph, model::OperationRange range,
                                                               const BlockSettings& settings) try {
  KeepFreedMemory();
  const int count = static_cast<int>(graph.operations.size());
  if (range.first < 0 || range.first >= range.end || range.end > count) {
    return base::InvalidArgument("a stage cannot have operations [{}, {}): the model has {}", range.first, range.end,
                                 count);
  }
  if (graph.imported != nullptr) return base::Internal("LayerBlock computes no exported models");
  at::set_num_threads(settings.threads == nullptr ? 1 : settings.threads->size());
  if (settings.device != nullptr) AllowTf32(false);
  std::unique_ptr<LayerBlock> block(new LayerBlock(graph, range, settings));
  for (const Operation& operation : block->operations_) {
    MEDLEY_ASSIGN_OR_RETURN(LayerConstants constants, ConstantsOf(operation, block->place_));
    block->constants_.push_back(std::move(constants));
  }
  MEDLEY_RETURN_IF_ERROR(block->KeepFixedRows());
  block->StepOf(0);
  return block;
} catch (const std::exception& error) {
  return FromTorch(error, fmt::format("operations [{}, {}) of the model", range.first, range.end));
}

LayerBlock::OpenStep& LayerBlock::StepOf(int slot) {
  while (open_.size() <= static_cast<size_t>(slot)) {
    OpenStep& open = open_.emplace_back();
    open.rows.resize(tables_.size());
    open.keys.resize(tables_.size());
  }
  return open_[static_cast<size_t>(slot)];
}

// A weight decay would change them, though their gradient is 0.
absl::Status LayerBlock::KeepFixedRows() {
  const at::AutoGradMode none(false);
  for (size_t i = 0; i < operations_.size(); ++i) {
    if (!operations_[i].pass_first) continue;
    const ParameterSpec& spec = dense_[first_dense_[i]];
    store_->Values(store_->applied_step(), first_dense_[i], {spec.rows, spec.columns})
        .narrow(0, 0, spec.columns)
        .copy_(constants_[i].identity);
  }
  return absl::OkStatus();
}

void LayerBlock::BeginStep(const StepShape& shape) {
  OpenStep& open = StepOf(shape.slot);
  open.shape = shape;
  open.backward_passes = 0;
  open.loss = at::Tensor();
  open.loss_sum = 0;
  open.loss_samples = 0;
  if (open.micros.size() < static_cast<size_t>(shape.micro_batches)) {
    open.micros.resize(static_cast<size_t>(shape.micro_batches));
  }
  store_->ForgetGradients(shape.step);
}

absl::StatusOr<Values> LayerBlock::Forward(Pass pass, const BatchView& features, Values inputs) {
  return CaughtPass(fmt::format("forward pass of micro-batch {} of {} samples", pass.micro, features.samples),
                    [&] { return ForwardPass(pass, features, inputs); });
}

absl::StatusOr<Values> LayerBlock::Backward(Pass pass, Values output_gradients) {
  return CaughtPass(fmt::format("backward pass of micro-batch {}", pass.micro),
                    [&] { return BackwardPass(pass, output_gradients); });
}

absl::StatusOr<Values> LayerBlock::Infer(const BatchView& features, Values inputs) {
  return CaughtPass(fmt::format("inference of {} samples", features.samples),
                    [&] { return InferPass(features, inputs); });
}

double LayerBlock::LossSum(int slot) const {
  const OpenStep& open = open_.at(static_cast<size_t>(slot));
  if (!open.loss.defined()) return open.loss_sum;
  open.loss_sum = std::numeric_limits<double>::quiet_NaN();
  const absl::StatusOr<at::Tensor> sum =
      Caught("the sum of losses", [&] { return place_.ToHost(std::exchange(open.loss, at::Tensor())); });
  if (sum.ok()) {
    open.loss_sum = sum->item<double>();
  } else {
    failure_ = sum.status();
  }
  return open.loss_sum;
}

RecordingCounts LayerBlock::Recordings() const {
  RecordingCounts counts = recorder_.counts();
  return counts += store_->Recordings();
}

int64_t LayerBlock::LossSamples(int slot) const { return open_.at(static_cast<size_t>(slot)).loss_samples; }

absl::Status LayerBlock::ApplyUpdate(const Optimizer& optimizer) {
  MEDLEY_RETURN_IF_ERROR(StoredBlock::ApplyUpdate(optimizer));
  return Caught("the fixed rows of parameters", [&] { return KeepFixedRows(); });
}

}  // namespace medley::worker::aten
