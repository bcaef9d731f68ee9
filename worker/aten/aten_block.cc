#include "worker/aten/aten_block.h"

#include <algorithm>
#include <exception>
#include <set>

#include "common/base/status.h"
#include "common/model/operation_range.h"
#include "worker/aten/aten_block_rep.h"
#include "worker/aten/conversions.h"
#include "worker/aten/packing.h"
#include "worker/exported/archive.h"
#include "worker/model/losses.h"

namespace medley::worker::aten {

absl::Status AtenBlock::Rep::Prepare() {
  std::set<int> nodes;
  std::vector<std::string> kept;
  const int end = range_.end - (has_loss_ ? 1 : 0);
  for (int o = range_.first; o < end; ++o) {
    const cut::Operation& operation = cut_->operations[static_cast<size_t>(o)];
    nodes.insert(operation.nodes.begin(), operation.nodes.end());
    for (const int crossing : operation.crossings) kept.push_back(cut_->crossings[static_cast<size_t>(crossing)].value);
    for (const exported::Output& output : cut_->program->outputs) {
      if (output.kind == exported::OutputKind::kBufferMutation &&
          std::ranges::find(operation.owned, output.target) != operation.owned.end()) {
        kept.push_back(output.value);
      }
    }
  }
  MEDLEY_ASSIGN_OR_RETURN(calls_, CallList::Compile(*cut_, {nodes.begin(), nodes.end()}, kept, place_.device()));
  MEDLEY_RETURN_IF_ERROR(BindPassed());
  return BindStored();
}

absl::Status AtenBlock::Rep::BindStored() {
  std::map<std::string, size_t> dense;  // by name
  std::set<int> checked;                // storages
  const std::vector<ParameterSpec> specs = ParametersOf(operations_, false);
  for (size_t i = 0; i < specs.size(); ++i) dense.try_emplace(specs[i].name, i);  // of copies the first
  table_slots_.assign(table_specs_.size(), -1);
  for (const exported::Input& input : cut_->program->inputs) {
    if (input.kind == exported::InputKind::kUser) {
      const int slot = calls_.SlotOf(input.value);
      if (slot < 0) continue;
      const auto slice = std::ranges::find(imported_->inputs, input.name, &worker::InputSlice::name);
      if (slice == imported_->inputs.end()) {
        return base::InvalidArgument("spec.data.inputs: the model's input '{}' has no data", input.name);
      }
      from_batch_.push_back({slot, *slice, TypeOf(cut_->program->tensors.at(input.value).type)});
      continue;
    }
    const auto stored = cut_->program->stored.find(input.name);
    const auto first = cut_->shared.find(input.name);
    const auto known = dense.find(first == cut_->shared.end() ? input.name : first->second);
    const int slot = calls_.SlotOf(input.value);
    if (stored == cut_->program->stored.end()) {
      if (slot < 0 && known == dense.end()) continue;
      return base::InvalidArgument("the archive has no tensor '{}'", input.name);
    }
    const auto table = std::ranges::find(table_specs_, input.name, &ParameterSpec::name);
    if (known == dense.end() && slot < 0) continue;
    if (checked.insert(stored->second.storage).second) {
      MEDLEY_RETURN_IF_ERROR(exported::CheckContents(stored->second, input.name));
    }
    if (table != table_specs_.end()) {  // LocalTables or a parameter server has the rows
      exported::LetGo(*cut_->program, stored->second);
      table_slots_[static_cast<size_t>(table - table_specs_.begin())] = slot;
      continue;
    }
    if (known == dense.end()) {
      MEDLEY_ASSIGN_OR_RETURN(at::Tensor constant, place_.ToPlace(TensorOf(stored->second)));
      constants_.push_back({slot, std::move(constant)});
      continue;
    }
    std::vector<float> values(static_cast<size_t>(specs[known->second].Size()));
    CopyStored(stored->second, values);
    for (size_t i = known->second; i < specs.size(); ++i) {
      if (specs[i].name != known->first) continue;
      MEDLEY_RETURN_IF_ERROR(store_->Write(i, DensePart::kWeights, 0, values));
    }
    exported::LetGo(*cut_->program, stored->second);
    if (slot < 0) continue;
    Bound bound{slot, known->second, specs[known->second].role, TypeOf(stored->second.type), stored->second.sizes};
    for (const exported::Output& output : cut_->program->outputs) {
      if (output.kind == exported::OutputKind::kBufferMutation && output.target == input.name) {
        bound.changed = calls_.SlotOf(output.value);
      }
    }
    bound_.push_back(std::move(bound));
  }
  return absl::OkStatus();
}

// The tensors of inputs and outputs, in the order in which each producer packs them.
absl::Status AtenBlock::Rep::BindPassed() {
  const auto add = [&](const std::vector<worker::BlockValue>& values, std::vector<Passed>& passed) {
    for (size_t v = 0; v < values.size(); ++v) {
      int64_t first = 0;
      for (const int index : cut_->operations[static_cast<size_t>(values[v].operation)].crossings) {
        const cut::Crossing& crossing = cut_->crossings[static_cast<size_t>(index)];
        passed.push_back({calls_.SlotOf(crossing.value), v, first, &crossing});
        first += crossing.floats;
      }
    }
  };
  add(shape_.inputs, inputs_);
  add(shape_.outputs, outputs_);
  if (!has_loss_) return absl::OkStatus();
  const cut::Crossing& result = cut_->crossings[static_cast<size_t>(cut_->operations.back().crossings.front())];
  result_ = {calls_.SlotOf(result.value), 0, 0, &result};
  result_passed_ = result.operation < range_.first;
  if (result_passed_) {
    const auto from = std::ranges::find(shape_.inputs, result.operation, &worker::BlockValue::operation);
    if (from == shape_.inputs.end()) return base::Internal("the loss has no input");
    result_->value = static_cast<size_t>(from - shape_.inputs.begin());
  }
  return absl::OkStatus();
}

absl::Status AtenBlock::Rep::Run(Micro& micro, const BatchView& features, Values inputs, RunContext context,
                                 int64_t version, const OpenTables& tables) {
  const int64_t samples = features.samples;
  micro.features = features;
  micro.parameters.assign(bound_.size(), {});
  micro.inputs.assign(inputs_.size(), {});
  micro.outputs.assign(outputs_.size(), {});
  micro.changes.assign(bound_.size(), {});
  micro.result = at::Tensor();
  context.samples = samples;
  context.precision = precision_;
  context.values.assign(calls_.slots(), {});
  const auto set = [&](int slot, const at::Tensor& tensor) {
    if (slot >= 0) context.values[static_cast<size_t>(slot)] = tensor;
  };
  const at::AutoGradMode gradients(context.training);
  std::vector<at::Tensor> statistics(bound_.size());
  for (size_t i = 0; i < bound_.size(); ++i) {
    const Bound& bound = bound_[i];
    at::Tensor tensor = store_->Values(version, bound.dense, bound.sizes);
    if (bound.role == ParameterRole::kStatistic) {
      statistics[i] = tensor = tensor.to(bound.type, false, true);
    } else if (bound.role == ParameterRole::kTrained && context.training) {
      micro.parameters[i] = tensor = at::detach(tensor).set_requires_grad(true);
    }
    set(bound.slot, tensor);
  }
  micro.rows.assign(tables.size(), {});
  for (size_t t = 0; t < tables.size(); ++t) {
    MEDLEY_ASSIGN_OR_RETURN(at::Tensor rows, place_.ToPlace(tables.Rows(t, table_specs_[t])));
    if (context.training) micro.rows[t] = rows = at::detach(rows).set_requires_grad(true);
    set(table_slots_[t], rows);
  }
  for (const Constant& constant : constants_) set(constant.slot, constant.tensor);
  for (const FromBatch& from : from_batch_) {
    MEDLEY_ASSIGN_OR_RETURN(const at::Tensor placed, place_.ToPlace(FromBatchRows(features, from.slice, from.type)));
    set(from.slot, placed);
  }
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const Passed& passed = inputs_[i];
    MEDLEY_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, SizesOf(passed, samples));
    MEDLEY_ASSIGN_OR_RETURN(at::Tensor tensor,
                            place_.ToPlace(Unpack(*passed.crossing, sizes, samples, inputs[passed.value], passed.first,
                                                  shape_.inputs[passed.value].width)));
    if (context.training && at::isFloatingType(tensor.scalar_type())) {
      micro.inputs[i] = tensor = at::detach(tensor).set_requires_grad(true);
    }
    set(passed.slot, tensor);
    if (result_passed_ && passed.value == result_->value) micro.result = tensor;
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
    micro.changes[i] = now.to(at::kFloat) - store_->Values(version, bound.dense, bound.sizes);
  }
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
  Micro& micro = open.micros.at(static_cast<size_t>(pass.micro));
  if (features.samples == 0) {
    micro.features = features;
    micro.returned.assign(shape_.outputs.size(), {});
    return micro.returned;
  }
  const RunContext context{.training = true, .seed = seed_, .step = open.shape.step, .first_sample = pass.first_sample};
  MEDLEY_RETURN_IF_ERROR(Run(micro, features, inputs, context, open.shape.version, open.tables));
  MEDLEY_RETURN_IF_ERROR(PackOutputs(micro));
  if (!has_loss_) return micro.returned;
  if (place_.apart()) {
    MEDLEY_RETURN_IF_ERROR(AddLoss(open, micro));
    return micro.returned;
  }
  MEDLEY_ASSIGN_OR_RETURN(const std::span<const float> logits, Logits(micro));
  const auto outputs = static_cast<int64_t>(result_->crossing->floats);
  micro.loss_gradient.Grow(logits.size());
  open.loss_sum +=
      LossGradient(operations_.back(), {logits.data(), features.samples, outputs}, features.labels, Scale(open.shape),
                   {micro.loss_gradient.data(), features.samples, outputs}, features.weights);
  open.loss_samples += features.samples;
  return micro.returned;
}

absl::StatusOr<Values> AtenBlock::Rep::Infer(const BatchView& features, Values inputs) {
  MEDLEY_RETURN_IF_ERROR(CheckSizes(*cut_, shape_, features, inputs));
  infer_.returned.assign(shape_.outputs.size(), {});
  infer_.features = features;
  if (features.samples > 0) {
    static const OpenTables kNone;
    const RunContext context{.training = false, .seed = seed_};
    MEDLEY_RETURN_IF_ERROR(
        Run(infer_, features, inputs, context, store_->applied_step(), open_.empty() ? kNone : open_.front().tables));
    MEDLEY_RETURN_IF_ERROR(PackOutputs(infer_));
  }
  if (!has_loss_) return infer_.returned;
  infer_.returned.assign(1, {});
  if (features.samples > 0) {
    MEDLEY_ASSIGN_OR_RETURN(infer_.returned.front(), Logits(infer_));
  }
  return infer_.returned;
}

absl::StatusOr<Values> AtenBlock::Rep::Backward(Pass pass, Values output_gradients) {
  OpenStep& open = open_.at(static_cast<size_t>(pass.slot));
  Micro& micro = open.micros.at(static_cast<size_t>(pass.micro));
  const int64_t samples = micro.features.samples;
  if (output_gradients.size() != shape_.outputs.size()) {
    return base::InvalidArgument("the block needs {} gradients of outputs, got {}", shape_.outputs.size(),
                                 output_gradients.size());
  }
  store_->BeginGradients(open.shape.step);
  returned_gradients_.assign(shape_.inputs.size(), {});
  if (samples == 0) return returned_gradients_;
  std::vector<at::Tensor> outputs, gradients, leaves;
  const auto add = [&](const at::Tensor& output, const Passed& passed, std::span<const float> rows,
                       int64_t width) -> absl::Status {
    if (!output.defined() || !output.requires_grad()) return absl::OkStatus();
    MEDLEY_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, SizesOf(passed, samples));
    outputs.push_back(output);
    MEDLEY_ASSIGN_OR_RETURN(at::Tensor gradient,
                            place_.ToPlace(Unpack(*passed.crossing, sizes, samples, rows, passed.first, width)));
    gradients.push_back(std::move(gradient));
    return absl::OkStatus();
  };
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const std::span<const float> rows = output_gradients[outputs_[i].value];
    const int64_t width = shape_.outputs[outputs_[i].value].width;
    if (rows.size() != static_cast<size_t>(samples * width)) {
      return base::InvalidArgument(
          "the gradient of {} samples for operation {} has {} floats, the block needs {} per sample", samples,
          shape_.outputs[outputs_[i].value].operation, rows.size(), width);
    }
    MEDLEY_RETURN_IF_ERROR(add(micro.outputs[i], outputs_[i], rows, width));
  }
  if (micro.result_gradient.defined()) {
    if (micro.result.requires_grad()) {
      outputs.push_back(micro.result);
      gradients.push_back(micro.result_gradient);
    }
  } else if (has_loss_) {
    const auto floats = static_cast<size_t>(samples * result_->crossing->floats);
    MEDLEY_RETURN_IF_ERROR(add(micro.result, {.crossing = result_->crossing}, micro.loss_gradient.First(floats),
                               result_->crossing->floats));
  }
  for (const auto* more : {&micro.parameters, &micro.rows, &micro.inputs}) {
    for (const at::Tensor& leaf : *more) {
      if (leaf.defined()) leaves.push_back(leaf);
    }
  }
  std::vector<at::Tensor> found(leaves.size());
  if (!outputs.empty() && !leaves.empty()) {
    found = torch::autograd::grad(outputs, leaves, gradients, /*retain_graph=*/false, /*create_graph=*/false,
                                  /*allow_unused=*/true);
  }
  size_t next = 0;
  for (size_t i = 0; i < bound_.size(); ++i) {
    if (micro.parameters[i].defined()) {
      if (const at::Tensor& gradient = found[next++]; gradient.defined())
        store_->AddGradient(bound_[i].dense, gradient, 1);
    } else if (micro.changes[i].defined()) {
      store_->AddGradient(bound_[i].dense, micro.changes[i], static_cast<float>(samples) * Scale(open.shape));
    }
  }
  for (size_t t = 0; t < micro.rows.size(); ++t) {
    if (!micro.rows[t].defined()) continue;
    const at::Tensor gradient = found[next++];
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
    MEDLEY_ASSIGN_OR_RETURN(const at::Tensor gradient,
                            place_.ToHost(micro.inputs[i].defined() ? found[next++] : at::Tensor()));
    const int64_t width = shape_.inputs[passed.value].width;
    Pack(*passed.crossing, gradient, samples,
         input_gradients_[passed.value].First(static_cast<size_t>(samples * width)), passed.first, width);
  }
  // The graph of this micro-batch is no longer needed.
  micro.parameters.clear();
  micro.rows.clear();
  micro.inputs.clear();
  micro.outputs.clear();
  micro.changes.clear();
  micro.result = micro.result_gradient = at::Tensor();
  return returned_gradients_;
}

}  // namespace medley::worker::aten
