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
#include "worker/aten/device_loss.h"
#include "worker/aten/device_mask.h"
#include "worker/aten/freed_memory.h"
#include "worker/aten/precision.h"

namespace medley::worker::aten {
namespace {

float Scale(const StepShape& shape) { return 1.0F / static_cast<float>(std::max(1, shape.global_samples)); }

at::Tensor OverIds(std::span<const int32_t> ids, int64_t samples) {
  return at::from_blob(const_cast<int32_t*>(ids.data()), {samples, std::ssize(ids) / samples},
                       at::TensorOptions().dtype(at::kInt));
}

}  // namespace

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
      store_(MakeParameterStore(dense_, settings.optimizer, settings.seed, settings.kept_updates, place_)) {
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

at::Tensor LayerBlock::Parameter(size_t dense, Micro& micro, const OpenStep& open, bool training) {
  const ParameterSpec& spec = dense_[dense];
  const std::vector<int64_t> sizes =
      spec.name == "bias" ? std::vector<int64_t>{spec.columns} : std::vector<int64_t>{spec.rows, spec.columns};
  at::Tensor values = store_->Values(training ? open.shape.version : store_->applied_step(), dense, sizes);
  if (!training) return values;
  return micro.parameters[dense] = at::detach(values).set_requires_grad(true);
}

at::Tensor LayerBlock::Compute(size_t index, Micro& micro, const OpenStep& open, const std::vector<at::Tensor>& inputs,
                               const at::Tensor& ids, const at::Tensor& numerics, bool training) {
  const Operation& operation = operations_[index];
  const int64_t samples = micro.features.samples;
  const size_t dense = first_dense_[index];
  switch (operation.kind) {
    case OperationKind::kEmbedding: {
      const size_t t = table_of_[index];
      const ParameterSpec& table = tables_[t];
      micro.positions[t] = ids.narrow(1, table.first_field, table.fields).reshape({-1});
      micro.rows[t] = open.rows[t].Gather(micro.positions[t], training);
      const at::Tensor vectors = operation.sum_fields
                                     ? micro.rows[t].view({samples, table.fields, table.columns}).sum(1)
                                     : micro.rows[t].view({samples, table.fields * table.columns});
      return vectors.size(1) < operation.output_width ? at::cat({vectors, numerics}, 1) : vectors;
    }
    case OperationKind::kFullyConnected:
      return FullyConnected(operation.activation, inputs.empty() ? numerics : inputs.front(),
                            Parameter(dense, micro, open, training), Parameter(dense + 1, micro, open, training));
    case OperationKind::kCross:
      return Cross(inputs.front(), inputs.back(), Parameter(dense, micro, open, training),
                   Parameter(dense + 1, micro, open, training));
    case OperationKind::kNumerics:
      return numerics;
    default:
      return VectorLayer(operation, inputs, constants_[index]);
  }
}

absl::Status LayerBlock::Run(Micro& micro, const OpenStep& open, const BatchView& features, Values inputs,
                             bool training) {
  MEDLEY_RETURN_IF_ERROR(std::exchange(rows_failed_, absl::OkStatus()));
  const int64_t samples = features.samples;
  micro.features = features;
  for (auto* each : {&micro.positions, &micro.rows}) each->assign(tables_.size(), {});
  micro.parameters.assign(dense_.size(), {});
  micro.inputs.assign(shape_.inputs.size(), {});
  micro.outputs.assign(shape_.outputs.size(), {});
  at::Tensor ids, numerics;
  if (!tables_.empty()) {
    MEDLEY_ASSIGN_OR_RETURN(ids, place_.ToPlace(OverIds(features.ids, samples)));
  }
  if (reads_numerics_ && sample_shape_.numerics > 0) {
    MEDLEY_ASSIGN_OR_RETURN(numerics, place_.ToPlace(Over(features.numerics, {samples, sample_shape_.numerics})));
  }
  const at::AutoGradMode gradients(training);
  for (size_t k = 0; k < shape_.inputs.size(); ++k) {
    MEDLEY_ASSIGN_OR_RETURN(const at::Tensor input, place_.ToPlace(Over(inputs[k], {samples, shape_.inputs[k].width})));
    micro.inputs[k] = training ? at::detach(input).set_requires_grad(true) : input;
  }
  std::vector<at::Tensor> values(operations_.size());
  for (size_t i = 0; i < operations_.size(); ++i) {
    std::vector<at::Tensor> from;
    for (const Source& source : shape_.sources[i]) {
      from.push_back(source.inside ? values[source.index] : micro.inputs[source.index]);
    }
    const Operation& operation = operations_[i];
    if (operation.kind == OperationKind::kLoss) {
      micro.result = from.front();
      continue;
    }
    values[i] = Compute(i, micro, open, from, ids, numerics, training);
    if (training && operation.dropout > 0) {
      const Draw draw{.seed = seed_,
                      .call = first_ + static_cast<int32_t>(i),
                      .step = open.shape.step,
                      .sample = micro.first_sample};
      values[i] =
          values[i] * MasksOnDevice(draw, 1 - operation.dropout, samples, operation.output_width, place_.Floats());
    }
  }
  for (size_t k = 0; k < shape_.outputs.size(); ++k) {
    micro.outputs[k] = values[static_cast<size_t>(shape_.outputs[k].operation - first_)];
  }
  return absl::OkStatus();
}

absl::StatusOr<Values> LayerBlock::ToHost(const std::vector<at::Tensor>& tensors, HostValues& host) const {
  host.tensors.assign(tensors.size(), {});
  host.spans.assign(tensors.size(), {});
  for (size_t k = 0; k < tensors.size(); ++k) {
    MEDLEY_ASSIGN_OR_RETURN(const at::Tensor copied, place_.ToHost(at::detach(tensors[k])));
    host.tensors[k] = copied.contiguous();
    host.spans[k] = {host.tensors[k].data_ptr<float>(), static_cast<size_t>(host.tensors[k].numel())};
  }
  return host.spans;
}

absl::StatusOr<Values> LayerBlock::ForwardPass(Pass pass, const BatchView& features, Values inputs) {
  MEDLEY_RETURN_IF_ERROR(CheckBatch(sample_shape_, features));
  MEDLEY_RETURN_IF_ERROR(CheckBlockValues("input", shape_.inputs, inputs, features.samples));
  OpenStep& open = open_.at(static_cast<size_t>(pass.slot));
  Micro& micro = open.micros.at(static_cast<size_t>(pass.micro));
  micro.first_sample = pass.first_sample;
  if (features.samples == 0) {
    micro.features = features;
    micro.returned.spans.assign(shape_.outputs.size(), {});
    return micro.returned.spans;
  }
  MEDLEY_RETURN_IF_ERROR(GatherRows(open, open.shape.version, open.shape.step));
  MEDLEY_RETURN_IF_ERROR(Run(micro, open, features, inputs, /*training=*/true));
  if (IsLast()) {
    MEDLEY_ASSIGN_OR_RETURN(const DeviceLoss found, LossOfBatch(place_, operations_.back(), at::detach(micro.result),
                                                                features, Scale(open.shape), class_weights_));
    micro.result_gradient = found.gradient;
    open.loss = open.loss.defined() ? open.loss + found.sum : found.sum;
    open.loss_samples += features.samples;
  }
  return ToHost(micro.outputs, micro.returned);
}

absl::StatusOr<Values> LayerBlock::InferPass(const BatchView& features, Values inputs) {
  MEDLEY_RETURN_IF_ERROR(CheckBatch(sample_shape_, features));
  MEDLEY_RETURN_IF_ERROR(CheckBlockValues("input", shape_.inputs, inputs, features.samples));
  const at::AutoGradMode none(false);
  const size_t values = IsLast() ? 1 : shape_.outputs.size();
  if (features.samples == 0) {
    infer_.returned.spans.assign(values, {});
    return infer_.returned.spans;
  }
  if (resident_ != nullptr) MEDLEY_RETURN_IF_ERROR(GatherRows(open_.front(), resident_->AppliedStep(), 0));
  MEDLEY_RETURN_IF_ERROR(Run(infer_, open_.front(), features, inputs, /*training=*/false));
  if (!IsLast()) return ToHost(infer_.outputs, infer_.returned);
  const bool drawn = operations_.back().negatives > 0;  // of which predictions take nothing
  return ToHost({drawn ? infer_.result.narrow(1, 0, 1) : infer_.result}, infer_.returned);
}

absl::Status LayerBlock::GradientsOfLeaves(OpenStep& open, Micro& micro, Values output_gradients,
                                           std::vector<at::Tensor>& of_inputs) {
  const int64_t samples = micro.features.samples;
  std::vector<at::Tensor> outputs, gradients, leaves;
  for (size_t k = 0; k < micro.outputs.size(); ++k) {
    if (!micro.outputs[k].requires_grad()) continue;
    MEDLEY_ASSIGN_OR_RETURN(at::Tensor gradient,
                            place_.ToPlace(Over(output_gradients[k], {samples, shape_.outputs[k].width})));
    outputs.push_back(micro.outputs[k]);
    gradients.push_back(std::move(gradient));
  }
  if (micro.result.defined() && micro.result.requires_grad()) {
    outputs.push_back(micro.result);
    gradients.push_back(micro.result_gradient);
  }
  for (const auto* more : {&micro.rows, &micro.parameters, &micro.inputs}) {
    std::ranges::copy_if(*more, std::back_inserter(leaves), [](const at::Tensor& leaf) { return leaf.defined(); });
  }
  std::vector<at::Tensor> found(leaves.size());
  if (!outputs.empty() && !leaves.empty()) {
    found = torch::autograd::grad(outputs, leaves, gradients, /*retain_graph=*/false, /*create_graph=*/false,
                                  /*allow_unused=*/true);
  }
  const at::AutoGradMode none(false);
  size_t next = 0;
  for (size_t t = 0; t < micro.rows.size(); ++t) {
    if (!micro.rows[t].defined()) continue;
    const at::Tensor& gradient = found[next++];
    if (gradient.defined()) open.rows[t].AddGradients(micro.positions[t], gradient);
  }
  for (size_t d = 0; d < dense_.size(); ++d) {
    if (!micro.parameters[d].defined()) continue;
    const at::Tensor& gradient = found[next++];
    if (!gradient.defined()) continue;
    if (has_fixed_rows_[d]) gradient.narrow(0, 0, dense_[d].columns).zero_();
    store_->AddGradient(d, gradient, 1);
  }
  for (size_t k = 0; k < micro.inputs.size(); ++k) {
    const at::Tensor& gradient = found[next++];
    of_inputs.push_back(gradient.defined() ? gradient : at::zeros_like(micro.inputs[k]));
  }
  return absl::OkStatus();
}

absl::StatusOr<Values> LayerBlock::BackwardPass(Pass pass, Values output_gradients) {
  OpenStep& open = open_.at(static_cast<size_t>(pass.slot));
  Micro& micro = open.micros.at(static_cast<size_t>(pass.micro));
  MEDLEY_RETURN_IF_ERROR(CheckBlockValues("output gradient", shape_.outputs, output_gradients, micro.features.samples));
  store_->BeginGradients(open.shape.step);
  std::vector<at::Tensor> of_inputs;
  if (micro.features.samples > 0) {
    MEDLEY_RETURN_IF_ERROR(GradientsOfLeaves(open, micro, output_gradients, of_inputs));
    // What this pass needed is no longer needed.
    for (auto* each : {&micro.positions, &micro.rows, &micro.parameters, &micro.inputs, &micro.outputs}) each->clear();
    micro.result = micro.result_gradient = at::Tensor();
  }
  if (++open.backward_passes >= open.shape.micro_batches) {
    for (PlacedRows& rows : open.rows) MEDLEY_RETURN_IF_ERROR(rows.GradientsToHost(place_));
  }
  if (micro.features.samples > 0) return ToHost(of_inputs, input_gradients_);
  input_gradients_.spans.assign(shape_.inputs.size(), {});
  return input_gradients_.spans;
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

int64_t LayerBlock::LossSamples(int slot) const { return open_.at(static_cast<size_t>(slot)).loss_samples; }

absl::Status LayerBlock::ApplyUpdate(const Optimizer& optimizer) {
  MEDLEY_RETURN_IF_ERROR(StoredBlock::ApplyUpdate(optimizer));
  return Caught("the fixed rows of parameters", [&] { return KeepFixedRows(); });
}

}  // namespace medley::worker::aten
