// The passes of a LayerBlock.
#include <algorithm>
#include <iterator>
#include <utility>

#include "common/base/status.h"
#include "worker/aten/layer_block.h"

namespace medley::worker::aten {
namespace {

float Scale(const StepShape& shape) { return 1.0F / static_cast<float>(std::max(1, shape.global_samples)); }

at::Tensor OverIds(std::span<const int32_t> ids, int64_t samples) {
  return at::from_blob(const_cast<int32_t*>(ids.data()), {samples, std::ssize(ids) / samples},
                       at::TensorOptions().dtype(at::kInt));
}

}  // namespace

at::Tensor LayerBlock::Parameter(size_t dense, Micro& micro, const OpenStep& open, bool training) {
  const ParameterSpec& spec = dense_[dense];
  const std::vector<int64_t> sizes =
      spec.name == "bias" ? std::vector<int64_t>{spec.columns} : std::vector<int64_t>{spec.rows, spec.columns};
  at::Tensor values = store_->Values(training ? open.shape.version : store_->applied_step(), dense, sizes);
  if (!training) return values;
  return micro.parameters[dense] = at::detach(values).set_requires_grad(true);
}

at::Tensor LayerBlock::ComputeLayer(size_t index, Micro& micro, const OpenStep& open,
                                    const std::vector<at::Tensor>& inputs, bool training) {
  const at::Tensor &ids = micro.placed.ids, &numerics = micro.placed.numerics;
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

absl::Status LayerBlock::PlaceInputs(Micro& micro, Values inputs, bool training) {
  MEDLEY_RETURN_IF_ERROR(std::exchange(rows_failed_, absl::OkStatus()));
  const BatchView& features = micro.features;
  const int64_t samples = features.samples;
  Placed& placed = micro.placed;
  if (!tables_.empty()) MEDLEY_RETURN_IF_ERROR(place_.Renew(OverIds(features.ids, samples), placed.ids));
  if (reads_numerics_ && sample_shape_.numerics > 0) {
    MEDLEY_RETURN_IF_ERROR(place_.Renew(Over(features.numerics, {samples, sample_shape_.numerics}), placed.numerics));
  }
  placed.inputs.resize(shape_.inputs.size());
  for (size_t k = 0; k < shape_.inputs.size(); ++k) {
    MEDLEY_RETURN_IF_ERROR(place_.Renew(Over(inputs[k], {samples, shape_.inputs[k].width}), placed.inputs[k]));
  }
  if (!training || !IsLast()) return absl::OkStatus();
  return PlaceLabels(place_, operations_.back(), features, placed.labels, class_weights_);
}

absl::Status LayerBlock::Compute(Micro& micro, const OpenStep& open, bool training, const DrawCounters* counters) {
  const int64_t samples = micro.features.samples;
  for (auto* each : {&micro.positions, &micro.rows}) each->assign(tables_.size(), {});
  micro.parameters.assign(dense_.size(), {});
  micro.inputs.assign(shape_.inputs.size(), {});
  micro.outputs.assign(shape_.outputs.size(), {});
  const at::AutoGradMode gradients(training);
  for (size_t k = 0; k < shape_.inputs.size(); ++k) {
    const at::Tensor& input = micro.placed.inputs[k];
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
    values[i] = ComputeLayer(i, micro, open, from, training);
    if (training && operation.dropout > 0) {
      const Draw draw{.seed = seed_,
                      .call = first_ + static_cast<int32_t>(i),
                      .step = open.shape.step,
                      .sample = micro.first_sample};
      values[i] = values[i] * MasksOnDevice(draw, 1 - operation.dropout, samples, operation.output_width,
                                            place_.Floats(), counters == nullptr ? at::Tensor() : counters->step(),
                                            counters == nullptr ? at::Tensor() : counters->first_sample());
    }
  }
  for (size_t k = 0; k < shape_.outputs.size(); ++k) {
    micro.outputs[k] = values[static_cast<size_t>(shape_.outputs[k].operation - first_)];
  }
  if (!training || !IsLast()) return absl::OkStatus();
  const DeviceLoss found = LossOnDevice(operations_.back(), at::detach(micro.result), micro.placed.labels.labels,
                                        Scale(open.shape), micro.placed.labels.weights, class_weights_);
  micro.result_gradient = found.gradient;
  micro.loss = found.sum;
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
  Micro& own = open.micros.at(static_cast<size_t>(pass.micro));
  own.features = features;
  own.first_sample = pass.first_sample;
  own.recorded = nullptr;
  if (features.samples == 0) {
    own.returned.spans.assign(shape_.outputs.size(), {});
    return own.returned.spans;
  }
  MEDLEY_RETURN_IF_ERROR(GatherRows(open, open.shape.version, open.shape.step));
  own.recorded = RecordedFor(open, pass, features);
  if (own.recorded != nullptr) MEDLEY_RETURN_IF_ERROR(ForwardRecorded(open, own, inputs));
  if (own.recorded == nullptr) {
    own.placed = {};
    MEDLEY_RETURN_IF_ERROR(PlaceInputs(own, inputs, /*training=*/true));
    MEDLEY_RETURN_IF_ERROR(Compute(own, open, /*training=*/true, nullptr));
    own.placed = {};
  }
  Micro& micro = own.recorded == nullptr ? own : own.recorded->micro;
  if (IsLast()) {
    const at::AutoGradMode none(false);
    // A recording writes its loss to the same place again.
    const bool again = own.recorded != nullptr;
    open.loss = open.loss.defined() ? open.loss + micro.loss : again ? micro.loss.clone() : micro.loss;
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
  infer_.features = features;
  infer_.placed = {};
  MEDLEY_RETURN_IF_ERROR(PlaceInputs(infer_, inputs, /*training=*/false));
  MEDLEY_RETURN_IF_ERROR(Compute(infer_, open_.front(), /*training=*/false, nullptr));
  if (!IsLast()) return ToHost(infer_.outputs, infer_.returned);
  const bool drawn = operations_.back().negatives > 0;  // of which predictions take nothing
  return ToHost({drawn ? infer_.result.narrow(1, 0, 1) : infer_.result}, infer_.returned);
}

absl::Status LayerBlock::PlaceGradients(Micro& micro, Values output_gradients) {
  std::vector<at::Tensor>& placed = micro.placed.gradients;
  placed.resize(shape_.outputs.size());
  for (size_t k = 0; k < placed.size(); ++k) {
    // Those of a recorded pass no longer have a graph, but a gradient if they had one.
    if (!placed[k].defined() && !micro.outputs[k].requires_grad()) continue;
    MEDLEY_RETURN_IF_ERROR(
        place_.Renew(Over(output_gradients[k], {int64_t{micro.features.samples}, shape_.outputs[k].width}), placed[k]));
  }
  return absl::OkStatus();
}

absl::Status LayerBlock::ComputeGradients(OpenStep& open, Micro& micro, bool again) {
  std::vector<at::Tensor> outputs, gradients, leaves;
  for (size_t k = 0; k < micro.outputs.size(); ++k) {
    if (!micro.placed.gradients[k].defined()) continue;
    outputs.push_back(micro.outputs[k]);
    gradients.push_back(micro.placed.gradients[k]);
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
    found = torch::autograd::grad(outputs, leaves, gradients, /*retain_graph=*/again, /*create_graph=*/false,
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
  micro.input_gradients.clear();
  for (const at::Tensor& input : micro.inputs) {
    const at::Tensor& gradient = found[next++];
    micro.input_gradients.push_back(gradient.defined() ? gradient : at::zeros_like(input));
  }
  return absl::OkStatus();
}

absl::StatusOr<Values> LayerBlock::BackwardPass(Pass pass, Values output_gradients) {
  OpenStep& open = open_.at(static_cast<size_t>(pass.slot));
  Micro& own = open.micros.at(static_cast<size_t>(pass.micro));
  const int samples = own.features.samples;
  MEDLEY_RETURN_IF_ERROR(CheckBlockValues("output gradient", shape_.outputs, output_gradients, samples));
  store_->BeginGradients(open.shape.step);
  const std::shared_ptr<RecordedPass> recorded = own.recorded;
  Micro& micro = recorded == nullptr ? own : recorded->micro;
  if (samples > 0) {
    MEDLEY_RETURN_IF_ERROR(PlaceGradients(micro, output_gradients));
    if (recorded != nullptr) {
      MEDLEY_RETURN_IF_ERROR(BackwardRecorded(open, own));
    } else {
      MEDLEY_RETURN_IF_ERROR(ComputeGradients(open, micro, /*again=*/false));
      // What this pass needed is no longer needed.
      micro.ForgetGraph();
      micro.outputs.clear();
      micro.placed = {};
      micro.result_gradient = micro.loss = at::Tensor();
    }
  }
  if (++open.backward_passes >= open.shape.micro_batches) {
    for (PlacedRows& rows : open.rows) MEDLEY_RETURN_IF_ERROR(rows.GradientsToHost(place_));
  }
  own.recorded = nullptr;
  if (samples == 0) {
    input_gradients_.spans.assign(shape_.inputs.size(), {});
    return input_gradients_.spans;
  }
  auto returned = ToHost(micro.input_gradients, input_gradients_);
  if (recorded == nullptr) micro.input_gradients.clear();
  return returned;
}

}  // namespace medley::worker::aten
