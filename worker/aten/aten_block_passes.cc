// The passes of an AtenBlock.
#include <algorithm>
#include <utility>

#include "common/base/status.h"
#include "worker/aten/aten_block_rep.h"
#include "worker/aten/packing.h"
#include "worker/model/losses.h"

namespace medley::worker::aten {

absl::Status AtenBlock::Rep::PlaceInputs(Micro& micro, Values inputs, bool training, const OpenTables& tables) {
  const int64_t samples = micro.features.samples;
  Placed& placed = micro.placed;
  placed.from_batch.resize(from_batch_.size());
  for (size_t i = 0; i < from_batch_.size(); ++i) {
    const FromBatch& from = from_batch_[i];
    MEDLEY_RETURN_IF_ERROR(place_.Renew(FromBatchRows(micro.features, from.slice, from.type), placed.from_batch[i]));
  }
  placed.rows.resize(tables.size());
  for (size_t t = 0; t < tables.size(); ++t) {
    MEDLEY_RETURN_IF_ERROR(place_.Renew(tables.Rows(t, table_specs_[t]), placed.rows[t]));
  }
  placed.inputs.resize(inputs_.size());
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const Passed& passed = inputs_[i];
    MEDLEY_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, SizesOf(passed, samples));
    MEDLEY_RETURN_IF_ERROR(place_.Renew(
        Unpack(*passed.crossing, sizes, samples, inputs[passed.value], passed.first, shape_.inputs[passed.value].width),
        placed.inputs[i]));
  }
  if (!training || !has_loss_ || !place_.apart()) return absl::OkStatus();
  return PlaceLabels(place_, operations_.back(), micro.features, placed.labels, class_weights_);
}

absl::Status AtenBlock::Rep::Compute(Micro& micro, RunContext context, const StepShape& shape) {
  micro.parameters.assign(bound_.size(), {});
  micro.inputs.assign(inputs_.size(), {});
  micro.outputs.assign(outputs_.size(), {});
  micro.changes.assign(bound_.size(), {});
  micro.result = at::Tensor();
  context.samples = micro.features.samples;
  context.precision = precision_;
  context.values.assign(calls_.slots(), {});
  const auto set = [&](int slot, const at::Tensor& tensor) {
    if (slot >= 0) context.values[static_cast<size_t>(slot)] = tensor;
  };
  const at::AutoGradMode gradients(context.training);
  std::vector<at::Tensor> statistics(bound_.size());
  for (size_t i = 0; i < bound_.size(); ++i) {
    const Bound& bound = bound_[i];
    at::Tensor tensor = store_->Values(shape.version, bound.dense, bound.sizes);
    if (bound.role == ParameterRole::kStatistic) {
      statistics[i] = tensor = tensor.to(bound.type, false, true);
    } else if (bound.role == ParameterRole::kTrained && context.training) {
      micro.parameters[i] = tensor = at::detach(tensor).set_requires_grad(true);
    }
    set(bound.slot, tensor);
  }
  micro.rows.assign(micro.placed.rows.size(), {});
  for (size_t t = 0; t < micro.rows.size(); ++t) {
    at::Tensor rows = micro.placed.rows[t];
    if (context.training) micro.rows[t] = rows = at::detach(rows).set_requires_grad(true);
    set(table_slots_[t], rows);
  }
  for (const Constant& constant : constants_) set(constant.slot, constant.tensor);
  for (size_t i = 0; i < from_batch_.size(); ++i) set(from_batch_[i].slot, micro.placed.from_batch[i]);
  for (size_t i = 0; i < inputs_.size(); ++i) {
    at::Tensor tensor = micro.placed.inputs[i];
    if (context.training && at::isFloatingType(tensor.scalar_type())) {
      micro.inputs[i] = tensor = at::detach(tensor).set_requires_grad(true);
    }
    set(inputs_[i].slot, tensor);
    if (result_passed_ && inputs_[i].value == result_->value) micro.result = tensor;
  }
  MEDLEY_RETURN_IF_ERROR(calls_.Run(context));
  for (size_t i = 0; i < outputs_.size(); ++i) {
    micro.outputs[i] = context.values[static_cast<size_t>(outputs_[i].slot)].toTensor();
  }
  if (has_loss_ && !result_passed_) micro.result = context.values[static_cast<size_t>(result_->slot)].toTensor();
  if (!context.training) return absl::OkStatus();
  const at::AutoGradMode none(false);
  for (size_t i = 0; i < bound_.size(); ++i) {
    const Bound& bound = bound_[i];
    if (bound.role != ParameterRole::kStatistic) continue;
    const at::Tensor now =
        bound.changed >= 0 ? context.values[static_cast<size_t>(bound.changed)].toTensor() : statistics[i];
    micro.changes[i] = now.to(at::kFloat) - store_->Values(shape.version, bound.dense, bound.sizes);
  }
  if (has_loss_ && place_.apart()) ComputeLoss(micro, Scale(shape));
  return absl::OkStatus();
}

absl::Status AtenBlock::Rep::PackOutputs(Micro& micro) {
  const int64_t samples = micro.features.samples;
  micro.packed.resize(shape_.outputs.size());
  micro.returned.assign(shape_.outputs.size(), {});
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const Passed& passed = outputs_[i];
    const int64_t width = shape_.outputs[passed.value].width;
    MEDLEY_ASSIGN_OR_RETURN(const at::Tensor output, place_.ToHost(micro.outputs[i]));
    if (passed.crossing->floats == width && output.is_same(micro.outputs[i]))
      micro.returned[passed.value] = AsRows(*passed.crossing, output, samples);
    if (!micro.returned[passed.value].empty() && passed.first == 0 && passed.crossing->floats == width) continue;
    AlignedFloats& packed = micro.packed[passed.value];
    const size_t floats = static_cast<size_t>(samples * width);
    packed.Grow(floats);
    Pack(*passed.crossing, output, samples, packed.First(floats), passed.first, width);
    micro.returned[passed.value] = packed.First(floats);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::span<const float>> AtenBlock::Rep::Logits(Micro& micro) {
  const cut::Crossing& crossing = *result_->crossing;
  const int64_t samples = micro.features.samples;
  MEDLEY_ASSIGN_OR_RETURN(const at::Tensor result, place_.ToHost(micro.result));
  if (result.is_same(micro.result)) {
    if (const auto rows = AsRows(crossing, result, samples); !rows.empty()) return rows;
  }
  const size_t floats = static_cast<size_t>(samples * crossing.floats);
  logits_.Grow(floats);
  Pack(crossing, result, samples, logits_.First(floats), 0, crossing.floats);
  return logits_.First(floats);
}

absl::StatusOr<Values> AtenBlock::Rep::Forward(Pass pass, const BatchView& features, Values inputs) {
  MEDLEY_RETURN_IF_ERROR(CheckSizes(*cut_, shape_, features, inputs));
  OpenStep& open = open_.at(static_cast<size_t>(pass.slot));
  Micro& own = open.micros.at(static_cast<size_t>(pass.micro));
  own.features = features;
  own.recorded = nullptr;
  if (features.samples == 0) {
    own.returned.assign(shape_.outputs.size(), {});
    return own.returned;
  }
  const RunContext context{.training = true, .seed = seed_, .step = open.shape.step, .first_sample = pass.first_sample};
  own.recorded = RecordedFor(open, pass, features);
  if (own.recorded != nullptr) MEDLEY_RETURN_IF_ERROR(ForwardRecorded(open, own, context, inputs));
  if (own.recorded == nullptr) {
    own.placed = {};
    MEDLEY_RETURN_IF_ERROR(PlaceInputs(own, inputs, /*training=*/true, open.tables));
    MEDLEY_RETURN_IF_ERROR(Compute(own, context, open.shape));
    own.placed = {};
  }
  Micro& micro = own.recorded == nullptr ? own : own.recorded->micro;
  MEDLEY_RETURN_IF_ERROR(PackOutputs(micro));
  if (!has_loss_) return micro.returned;
  open.loss_samples += features.samples;
  if (place_.apart()) {
    const at::AutoGradMode none(false);
    // A recording writes its loss to the same place again.
    const bool again = own.recorded != nullptr;
    open.loss = open.loss.defined() ? open.loss + micro.loss : again ? micro.loss.clone() : micro.loss;
    return micro.returned;
  }
  MEDLEY_ASSIGN_OR_RETURN(const std::span<const float> logits, Logits(micro));
  const auto outputs = static_cast<int64_t>(result_->crossing->floats);
  micro.loss_gradient.Grow(logits.size());
  open.loss_sum +=
      LossGradient(operations_.back(), {logits.data(), features.samples, outputs}, features.labels, Scale(open.shape),
                   {micro.loss_gradient.data(), features.samples, outputs}, features.weights);
  return micro.returned;
}

absl::StatusOr<Values> AtenBlock::Rep::Infer(const BatchView& features, Values inputs) {
  MEDLEY_RETURN_IF_ERROR(CheckSizes(*cut_, shape_, features, inputs));
  infer_.returned.assign(shape_.outputs.size(), {});
  infer_.features = features;
  if (features.samples > 0) {
    static const OpenTables kNone;
    infer_.placed = {};
    MEDLEY_RETURN_IF_ERROR(
        PlaceInputs(infer_, inputs, /*training=*/false, open_.empty() ? kNone : open_.front().tables));
    MEDLEY_RETURN_IF_ERROR(Compute(infer_, {.training = false, .seed = seed_}, {.version = store_->applied_step()}));
    MEDLEY_RETURN_IF_ERROR(PackOutputs(infer_));
  }
  if (!has_loss_) return infer_.returned;
  infer_.returned.assign(1, {});
  if (features.samples > 0) {
    MEDLEY_ASSIGN_OR_RETURN(infer_.returned.front(), Logits(infer_));
  }
  return infer_.returned;
}

absl::Status AtenBlock::Rep::PlaceGradients(Micro& micro, Values output_gradients) {
  const int64_t samples = micro.features.samples;
  std::vector<at::Tensor>& placed = micro.placed.gradients;
  placed.resize(outputs_.size());
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const Passed& passed = outputs_[i];
    const std::span<const float> rows = output_gradients[passed.value];
    const int64_t width = shape_.outputs[passed.value].width;
    if (rows.size() != static_cast<size_t>(samples * width)) {
      return base::InvalidArgument(
          "the gradient of {} samples for operation {} has {} floats, the block needs {} per sample", samples,
          shape_.outputs[passed.value].operation, rows.size(), width);
    }
    // Those of a recorded pass no longer have a graph, but a gradient if they had one.
    if (!placed[i].defined() && (!micro.outputs[i].defined() || !micro.outputs[i].requires_grad())) continue;
    MEDLEY_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, SizesOf(passed, samples));
    MEDLEY_RETURN_IF_ERROR(
        place_.Renew(Unpack(*passed.crossing, sizes, samples, rows, passed.first, width), placed[i]));
  }
  if (!has_loss_ || place_.apart() || !micro.result.requires_grad()) return absl::OkStatus();
  const int64_t floats = result_->crossing->floats;
  MEDLEY_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, SizesOf(*result_, samples));
  micro.result_gradient = Unpack(*result_->crossing, sizes, samples,
                                 micro.loss_gradient.First(static_cast<size_t>(samples * floats)), 0, floats);
  return absl::OkStatus();
}

absl::Status AtenBlock::Rep::ComputeGradients(Micro& micro, const StepShape& shape, bool again) {
  std::vector<at::Tensor> outputs, gradients, leaves;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (!micro.placed.gradients[i].defined()) continue;
    outputs.push_back(micro.outputs[i]);
    gradients.push_back(micro.placed.gradients[i]);
  }
  if (micro.result.defined() && micro.result.requires_grad()) {
    outputs.push_back(micro.result);
    gradients.push_back(micro.result_gradient);
  }
  for (const auto* more : {&micro.parameters, &micro.rows, &micro.inputs}) {
    std::ranges::copy_if(*more, std::back_inserter(leaves), [](const at::Tensor& leaf) { return leaf.defined(); });
  }
  std::vector<at::Tensor> found(leaves.size());
  if (!outputs.empty() && !leaves.empty()) {
    found = torch::autograd::grad(outputs, leaves, gradients, /*retain_graph=*/again, /*create_graph=*/false,
                                  /*allow_unused=*/true);
  }
  size_t next = 0;
  for (size_t i = 0; i < bound_.size(); ++i) {
    if (micro.parameters[i].defined()) {
      if (const at::Tensor& gradient = found[next++]; gradient.defined())
        store_->AddGradient(bound_[i].dense, gradient, 1);
    } else if (micro.changes[i].defined()) {
      store_->AddGradient(bound_[i].dense, micro.changes[i], static_cast<float>(micro.features.samples) * Scale(shape));
    }
  }
  micro.row_gradients.assign(micro.rows.size(), {});
  for (size_t t = 0; t < micro.rows.size(); ++t) {
    if (micro.rows[t].defined()) micro.row_gradients[t] = found[next++];
  }
  micro.input_gradients.assign(inputs_.size(), {});
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (micro.inputs[i].defined()) micro.input_gradients[i] = found[next++];
  }
  return absl::OkStatus();
}

absl::Status AtenBlock::Rep::GradientsToHost(OpenStep& open, Micro& micro) {
  const int64_t samples = micro.features.samples;
  for (size_t t = 0; t < micro.row_gradients.size(); ++t) {
    const at::Tensor& gradient = micro.row_gradients[t];
    if (!gradient.defined()) continue;
    MEDLEY_ASSIGN_OR_RETURN(const at::Tensor here,
                            place_.ToHost(gradient.is_sparse() ? gradient.to_dense() : gradient));
    open.tables.AddGradient(t, table_specs_[t], here);
  }
  input_gradients_.resize(shape_.inputs.size());
  for (size_t v = 0; v < shape_.inputs.size(); ++v) {
    const auto floats = static_cast<size_t>(samples) * static_cast<size_t>(shape_.inputs[v].width);
    input_gradients_[v].Grow(floats);
    returned_gradients_[v] = input_gradients_[v].First(floats);
  }
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const Passed& passed = inputs_[i];
    MEDLEY_ASSIGN_OR_RETURN(const at::Tensor gradient, place_.ToHost(micro.input_gradients[i]));
    const int64_t width = shape_.inputs[passed.value].width;
    Pack(*passed.crossing, gradient, samples,
         input_gradients_[passed.value].First(static_cast<size_t>(samples * width)), passed.first, width);
  }
  return absl::OkStatus();
}

absl::StatusOr<Values> AtenBlock::Rep::Backward(Pass pass, Values output_gradients) {
  OpenStep& open = open_.at(static_cast<size_t>(pass.slot));
  Micro& own = open.micros.at(static_cast<size_t>(pass.micro));
  if (output_gradients.size() != shape_.outputs.size()) {
    return base::InvalidArgument("the block needs {} gradients of outputs, got {}", shape_.outputs.size(),
                                 output_gradients.size());
  }
  store_->BeginGradients(open.shape.step);
  returned_gradients_.assign(shape_.inputs.size(), {});
  if (own.features.samples == 0) return returned_gradients_;
  Micro& micro = own.recorded == nullptr ? own : own.recorded->micro;
  MEDLEY_RETURN_IF_ERROR(PlaceGradients(micro, output_gradients));
  if (own.recorded != nullptr) {
    MEDLEY_RETURN_IF_ERROR(BackwardRecorded(open, own));
  } else {
    MEDLEY_RETURN_IF_ERROR(ComputeGradients(micro, open.shape, /*again=*/false));
  }
  MEDLEY_RETURN_IF_ERROR(GradientsToHost(open, micro));
  if (std::exchange(own.recorded, nullptr) != nullptr) return returned_gradients_;
  // The graph of this micro-batch is no longer needed.
  for (auto* each : {&own.parameters, &own.rows, &own.inputs, &own.outputs, &own.changes, &own.row_gradients,
                     &own.input_gradients}) {
    each->clear();
  }
  own.placed = {};
  own.result = own.result_gradient = own.loss = at::Tensor();
  return returned_gradients_;
}

}  // namespace medley::worker::aten
