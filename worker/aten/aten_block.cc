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

}  // namespace medley::worker::aten
