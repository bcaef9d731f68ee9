#include "worker/aten/aten_block.h"

#include <algorithm>
#include <exception>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "common/base/status.h"
#include "common/model/operation_range.h"
#include "worker/aten/block_memory.h"
#include "worker/aten/call_list.h"
#include "worker/aten/conversions.h"
#include "worker/aten/errors.h"
#include "worker/aten/freed_memory.h"
#include "worker/aten/open_tables.h"
#include "worker/aten/packing.h"
#include "worker/exported/archive.h"
#include "worker/model/aligned_floats.h"
#include "worker/model/block_shape.h"
#include "worker/model/losses.h"

namespace medley::worker::aten {

using worker::AlignedFloats;
using worker::BatchView;
using worker::BlockShape;
using worker::Graph;
using worker::ParameterRole;
using worker::ParameterSpec;
using worker::Pass;
using worker::StepShape;
using worker::Values;

namespace {

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
  AlignedFloats loss_gradient;
  std::vector<AlignedFloats> packed;             // by output of the block
  std::vector<std::span<const float>> returned;  // by output of the block
};

struct OpenStep {
  StepShape shape;
  std::vector<Micro> micros;
  OpenTables tables;
  int left = 0;  // micro-batches without a backward pass
  double loss_sum = 0;
  int64_t loss_samples = 0;
};

}  // namespace

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
        memory_(ParametersOf(operations_, false), options.optimizer, options.seed, options.kept_updates,
                options.device),
        has_loss_(operations_.back().kind == worker::OperationKind::kLoss) {}

  absl::Status Prepare();

  const BlockShape& shape() const { return shape_; }
  bool has_loss() const { return has_loss_; }
  BlockMemory& memory() { return memory_; }
  const std::vector<ParameterSpec>& tables() const { return table_specs_; }
  const OpenStep& step(int slot) const { return open_.at(static_cast<size_t>(slot)); }

  void BeginStep(const StepShape& shape) {
    OpenStep& open = StepOf(shape.slot);
    open.shape = shape;
    open.left = shape.micro_batches;
    open.loss_sum = 0;
    open.loss_samples = 0;
    if (open.micros.size() < static_cast<size_t>(shape.micro_batches)) {
      open.micros.resize(static_cast<size_t>(shape.micro_batches));
    }
    memory_.ForgetGradients(shape.step);
  }

  void SetRows(int slot, int table, std::span<const float> rows) {
    StepOf(slot).tables.Set(static_cast<size_t>(table), rows);  // for Infer also before the first step
  }

  absl::StatusOr<Values> Forward(Pass pass, const BatchView& features, Values inputs);
  absl::StatusOr<Values> Backward(Pass pass, Values output_gradients);
  absl::StatusOr<Values> Infer(const BatchView& features, Values inputs);

  // Those of a step whose micro-batches did not all have a backward pass are collected here. After an error ApplyUpdate
  // tries again, and returns its error.
  std::span<float> Gradients() {
    failure_ = memory_.CollectGradients();
    return memory_.store().Gradients();
  }
  const absl::Status& failure() const { return failure_; }

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
  BlockMemory memory_;
  absl::Status failure_;  // of the last Gradients()
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
  std::vector<AlignedFloats> input_gradients_;
  std::vector<std::span<const float>> returned_gradients_;
};

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
  MEDLEY_ASSIGN_OR_RETURN(calls_, CallList::Compile(*cut_, {nodes.begin(), nodes.end()}, kept, memory_.place()));
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
      MEDLEY_ASSIGN_OR_RETURN(at::Tensor constant, memory_.ToPlace(TensorOf(stored->second)));
      constants_.push_back({slot, std::move(constant)});
      continue;
    }
    for (size_t i = known->second; i < specs.size(); ++i) {
      if (specs[i].name == known->first) CopyStored(stored->second, memory_.store().Weights(i));
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
  context.values.assign(calls_.slots(), {});
  const auto set = [&](int slot, const at::Tensor& tensor) {
    if (slot >= 0) context.values[static_cast<size_t>(slot)] = tensor;
  };
  const at::AutoGradMode gradients(context.training);
  std::vector<at::Tensor> statistics(bound_.size());
  for (size_t i = 0; i < bound_.size(); ++i) {
    const Bound& bound = bound_[i];
    MEDLEY_ASSIGN_OR_RETURN(at::Tensor tensor, memory_.Values(version, bound.dense, bound.sizes));
    if (bound.role == ParameterRole::kStatistic) {
      statistics[i] = tensor = tensor.to(bound.type, false, true);
    } else if (bound.role == ParameterRole::kTrained && context.training) {
      micro.parameters[i] = tensor = at::detach(tensor).set_requires_grad(true);
    }
    set(bound.slot, tensor);
  }
  micro.rows.assign(tables.size(), {});
  for (size_t t = 0; t < tables.size(); ++t) {
    MEDLEY_ASSIGN_OR_RETURN(at::Tensor rows, memory_.ToPlace(tables.Rows(t, table_specs_[t])));
    if (context.training) micro.rows[t] = rows = at::detach(rows).set_requires_grad(true);
    set(table_slots_[t], rows);
  }
  for (const Constant& constant : constants_) set(constant.slot, constant.tensor);
  for (const FromBatch& from : from_batch_) {
    MEDLEY_ASSIGN_OR_RETURN(const at::Tensor placed, memory_.ToPlace(FromBatchRows(features, from.slice, from.type)));
    set(from.slot, placed);
  }
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const Passed& passed = inputs_[i];
    MEDLEY_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, SizesOf(passed, samples));
    MEDLEY_ASSIGN_OR_RETURN(at::Tensor tensor,
                            memory_.ToPlace(Unpack(*passed.crossing, sizes, samples, inputs[passed.value], passed.first,
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
    MEDLEY_ASSIGN_OR_RETURN(const at::Tensor before, memory_.Values(version, bound.dense, bound.sizes));
    micro.changes[i] = now.to(at::kFloat) - before;
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
    MEDLEY_ASSIGN_OR_RETURN(const at::Tensor output, memory_.ToHost(micro.outputs[i]));
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
  MEDLEY_ASSIGN_OR_RETURN(const at::Tensor result, memory_.ToHost(micro.result));
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
    MEDLEY_RETURN_IF_ERROR(Run(infer_, features, inputs, context, memory_.store().applied_step(),
                               open_.empty() ? kNone : open_.front().tables));
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
  MEDLEY_RETURN_IF_ERROR(memory_.BeginGradients(open.shape.step));
  const bool last = --open.left == 0;
  returned_gradients_.assign(shape_.inputs.size(), {});
  if (samples == 0) {
    if (last) MEDLEY_RETURN_IF_ERROR(memory_.CollectGradients());
    return returned_gradients_;
  }
  std::vector<at::Tensor> outputs, gradients, leaves;
  const auto add = [&](const at::Tensor& output, const Passed& passed, std::span<const float> rows,
                       int64_t width) -> absl::Status {
    if (!output.defined() || !output.requires_grad()) return absl::OkStatus();
    MEDLEY_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, SizesOf(passed, samples));
    outputs.push_back(output);
    MEDLEY_ASSIGN_OR_RETURN(at::Tensor gradient,
                            memory_.ToPlace(Unpack(*passed.crossing, sizes, samples, rows, passed.first, width)));
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
  if (has_loss_) {
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
        memory_.AddGradient(bound_[i].dense, gradient, 1);
    } else if (micro.changes[i].defined()) {
      memory_.AddGradient(bound_[i].dense, micro.changes[i], static_cast<float>(samples) * Scale(open.shape));
    }
  }
  for (size_t t = 0; t < micro.rows.size(); ++t) {
    if (!micro.rows[t].defined()) continue;
    const at::Tensor gradient = found[next++];
    if (!gradient.defined()) continue;
    MEDLEY_ASSIGN_OR_RETURN(const at::Tensor here,
                            memory_.ToHost(gradient.is_sparse() ? gradient.to_dense() : gradient));
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
                            memory_.ToHost(micro.inputs[i].defined() ? found[next++] : at::Tensor()));
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
  micro.result = at::Tensor();
  if (last) MEDLEY_RETURN_IF_ERROR(memory_.CollectGradients());
  return returned_gradients_;
}

AtenBlock::AtenBlock(std::unique_ptr<Rep> rep) : rep_(std::move(rep)) {}
AtenBlock::~AtenBlock() = default;

absl::StatusOr<std::unique_ptr<AtenBlock>> AtenBlock::Create(const Graph& graph, model::OperationRange range,
                                                             const Options& options) try {
  KeepFreedMemory();
  const int count = static_cast<int>(graph.operations.size());
  if (graph.imported == nullptr || range.first < 0 || range.first >= range.end || range.end > count) {
    return base::InvalidArgument("a stage cannot have operations [{}, {}): the exported model has {}", range.first,
                                 range.end, count);
  }
  at::set_num_threads(std::max(1, options.threads));
  if (options.device != nullptr) at::globalContext().setAllowTF32CuDNN(false);  // float32 as on CPUs
  auto rep = std::make_unique<Rep>(graph, range, options);
  MEDLEY_RETURN_IF_ERROR(rep->Prepare());
  return std::unique_ptr<AtenBlock>(new AtenBlock(std::move(rep)));
} catch (const std::exception& error) {
  return FromTorch(error, fmt::format("operations [{}, {}) of the exported model", range.first, range.end));
}

const std::vector<worker::BlockValue>& AtenBlock::Inputs() const { return rep_->shape().inputs; }
const std::vector<worker::BlockValue>& AtenBlock::Outputs() const { return rep_->shape().outputs; }
bool AtenBlock::IsLast() const { return rep_->has_loss(); }
const std::vector<ParameterSpec>& AtenBlock::Tables() const { return rep_->tables(); }
void AtenBlock::BeginStep(const StepShape& shape) { rep_->BeginStep(shape); }
void AtenBlock::SetRows(int slot, int table, std::span<const float> rows) { rep_->SetRows(slot, table, rows); }

absl::StatusOr<Values> AtenBlock::Forward(Pass pass, const BatchView& features, Values inputs) try {
  return rep_->Forward(pass, features, inputs);
} catch (const std::exception& error) {
  return FromTorch(error, fmt::format("forward pass of micro-batch {}", pass.micro));
}

absl::StatusOr<Values> AtenBlock::Backward(Pass pass, Values output_gradients) try {
  return rep_->Backward(pass, output_gradients);
} catch (const std::exception& error) {
  return FromTorch(error, fmt::format("backward pass of micro-batch {}", pass.micro));
}

absl::StatusOr<Values> AtenBlock::Infer(const BatchView& features, Values inputs) try {
  return rep_->Infer(features, inputs);
} catch (const std::exception& error) {
  return FromTorch(error, "inference");
}

std::span<const float> AtenBlock::RowGradients(int slot, int table) const {
  return rep_->step(slot).tables.Gradients(static_cast<size_t>(table));
}
std::span<float> AtenBlock::Gradients() { return rep_->Gradients(); }
std::vector<worker::DenseParameter> AtenBlock::Parameters() {
  rep_->memory().ForgetCopies();  // the caller may write
  return rep_->memory().store().Parameters();
}
double AtenBlock::LossSum(int slot) const { return rep_->step(slot).loss_sum; }
int64_t AtenBlock::LossSamples(int slot) const { return rep_->step(slot).loss_samples; }

absl::Status AtenBlock::ApplyUpdate(const worker::Optimizer& optimizer) {
  rep_->Gradients();
  MEDLEY_RETURN_IF_ERROR(rep_->failure());
  rep_->memory().store().ApplyUpdate(optimizer);
  return absl::OkStatus();
}
std::array<std::span<float>, 2> AtenBlock::Newest() {
  rep_->memory().ForgetCopies();  // the caller may write
  return rep_->memory().store().Newest();
}
void AtenBlock::KeepAgreed() { rep_->memory().store().KeepAgreed(); }
void AtenBlock::ForgetAgreed() { rep_->memory().store().ForgetAgreed(); }
int64_t AtenBlock::AgreedStep() const { return rep_->memory().store().agreed_step(); }
int64_t AtenBlock::AppliedStep() const { return rep_->memory().store().applied_step(); }
int64_t AtenBlock::UndoLimit() const { return rep_->memory().store().undo_limit(); }
absl::Status AtenBlock::UndoTo(int64_t step) {
  rep_->memory().ForgetCopies();  // of steps that will have other values
  return rep_->memory().store().UndoTo(step);
}
void AtenBlock::SetAppliedStep(int64_t step) {
  rep_->memory().ForgetCopies();
  rep_->memory().store().SetAppliedStep(step);
}

}  // namespace medley::worker::aten
