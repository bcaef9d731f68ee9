// What is known of the values of a program, before its nodes are divided into operations.
#include <absl/strings/str_join.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "common/base/status.h"
#include "worker/cut/divider.h"
#include "worker/cut/sizes.h"
#include "worker/cut/uses.h"

namespace medley::worker::cut {
namespace {

using exported::Input;
using exported::InputKind;
using exported::Node;

bool IsFloat(exported::ScalarType type) {
  return type == exported::ScalarType::kFloat16 || type == exported::ScalarType::kFloat32 ||
         type == exported::ScalarType::kFloat64 || type == exported::ScalarType::kBFloat16;
}

}  // namespace

std::string FirstComponents(const std::string& path, int depth) {
  size_t end = 0;
  for (int i = 0; i < depth; ++i) {
    end = path.find('.', end == 0 ? 0 : end + 1);
    if (end == std::string::npos) return path;
  }
  return path.substr(0, end);
}

bool Within(const std::string& path, const std::string& module) {
  return module.empty() || path == module || (path.starts_with(module) && path[module.size()] == '.');
}

absl::Status Divider::FindBatch() {
  std::string fixed;
  for (const Input& input : program_.inputs) {
    if (input.kind != InputKind::kUser) continue;
    const auto meta = program_.tensors.find(input.value);
    if (meta == program_.tensors.end()) {
      return base::InvalidArgument("the model's input '{}' is no tensor; only tensors can come from data", input.name);
    }
    const std::vector<exported::SymInt>& sizes = meta->second.sizes;
    for (size_t axis = 0; axis < sizes.size(); ++axis) {
      if (sizes[axis].expression.empty()) continue;
      MEDLEY_ASSIGN_OR_RETURN(const Expression size, Expression::Parse(sizes[axis].expression));
      const std::string symbol = size.symbols().size() == 1 ? size.symbols().front() : sizes[axis].expression;
      if (axis > 0) {
        return base::InvalidArgument(
            "the model's input '{}' has a dynamic size in dimension {}: only the batch, dimension 0, may be dynamic",
            input.name, axis);
      }
      if (!out_.batch.empty() && out_.batch != symbol) {
        return base::InvalidArgument(
            "the model's inputs have different batches, '{}' and '{}': export them with the "
            "same torch.export.Dim",
            out_.batch, symbol);
      }
      out_.batch = symbol;
    }
    if (sizes.empty() || sizes[0].expression.empty()) fixed = input.name;
  }
  if (!fixed.empty() || out_.batch.empty()) {
    return base::InvalidArgument(
        "the model's input '{}' has a fixed batch. Export with: torch.export.export(model, (x,), dynamic_shapes="
        "({{0: torch.export.Dim(\"batch\")}},)), and the same Dim for every input",
        fixed);
  }
  const auto range = program_.ranges.find(out_.batch);
  if (range != program_.ranges.end()) out_.samples = range->second;
  out_.program = owner_;
  return absl::OkStatus();
}

absl::Status Divider::FindResult() {
  std::vector<std::string> results;
  for (const exported::Output& output : program_.outputs) {
    if (output.kind == exported::OutputKind::kUser || output.kind == exported::OutputKind::kLoss) {
      results.push_back(output.value);
    }
    if (output.kind == exported::OutputKind::kUserInputMutation) {
      return base::InvalidArgument("the model writes to its input '{}', which training data cannot take",
                                   output.target);
    }
    if (output.kind == exported::OutputKind::kBufferMutation) statistics_.insert(output.target);
  }
  if (results.empty()) return base::InvalidArgument("the model has no output");
  std::string names;
  if (options_.output.empty()) {
    if (results.size() > 1) {
      return base::InvalidArgument("the model has {} outputs ({}): spec.model.output says which one the loss takes",
                                   results.size(), absl::StrJoin(results, ", "));
    }
    out_.result = results.front();
  } else {
    for (size_t i = 0; i < results.size(); ++i) {
      if (options_.output == results[i] || options_.output == std::to_string(i)) out_.result = results[i];
    }
    if (out_.result.empty()) {
      return base::InvalidArgument("spec.model.output: the model has no output '{}'; it has {}", options_.output,
                                   absl::StrJoin(results, ", "));
    }
  }
  const auto meta = program_.tensors.find(out_.result);
  if (meta == program_.tensors.end() || !IsFloat(meta->second.type)) {
    return base::InvalidArgument("the model's output '{}' is no tensor of floats", out_.result);
  }
  return absl::OkStatus();
}

absl::Status Divider::CheckModules() const {
  for (const std::string& module : options_.modules) {
    const bool known =
        std::ranges::any_of(program_.nodes, [&](const Node& node) { return Within(node.module_path, module); });
    if (!known || module.empty()) {
      std::set<std::string> names;
      for (const Node& node : program_.nodes) {
        if (!node.module_path.empty() && names.size() < 8) names.insert(FirstComponents(node.module_path, 2));
      }
      return base::InvalidArgument("spec.model.cut.modules: the model has no module '{}'; it has, among others, {}",
                                   module, absl::StrJoin(names, ", "));
    }
  }
  return absl::OkStatus();
}

void Divider::FindShared() {
  std::map<std::tuple<int, int64_t, std::vector<int64_t>, std::vector<int64_t>>, std::string> first;
  for (const Input& input : program_.inputs) {
    const auto stored = program_.stored.find(input.name);
    if (input.kind != InputKind::kParameter || stored == program_.stored.end()) continue;
    const exported::StoredTensor& tensor = stored->second;
    const auto [known, added] =
        first.try_emplace({tensor.storage, tensor.offset, tensor.sizes, tensor.strides}, input.name);
    if (!added) out_.shared[input.name] = known->second;
  }
}

const std::string& Divider::FirstName(const std::string& name) const {
  const auto found = out_.shared.find(name);
  return found == out_.shared.end() ? name : found->second;
}

void Divider::Classify() {
  // Buffers that batch norms write although the signature does not say so.
  std::map<std::string, const Input*> by_value;
  for (const Input& input : program_.inputs) by_value[input.value] = &input;
  for (const Node& node : program_.nodes) {
    for (const char* name : {"running_mean", "running_var"}) {
      const exported::Argument* argument = ArgumentOf(node, name);
      const auto* ref = argument != nullptr ? std::get_if<exported::ValueRef>(argument) : nullptr;
      const auto found = ref != nullptr ? by_value.find(ref->name) : by_value.end();
      if (found != by_value.end() && found->second->kind == InputKind::kBuffer) statistics_.insert(found->second->name);
    }
    if (!InPlace(node)) continue;
    ForEachUse(node.inputs.front().value, [&](const std::string& name) {
      const auto found = by_value.find(name);
      if (found != by_value.end() && found->second->kind == InputKind::kBuffer) statistics_.insert(found->second->name);
    });
  }
  for (const Input& input : program_.inputs) {
    Value& value = values_[input.value];
    value.input = &input;
    value.storage = input.value;
    value.from_batch = input.kind == InputKind::kUser;
    const auto meta = program_.tensors.find(input.value);
    const bool floats = meta != program_.tensors.end() && IsFloat(meta->second.type);
    value.trained = IsOwned(input) || (input.kind == InputKind::kUser && floats);
  }
  light_.assign(program_.nodes.size(), false);
  for (int n = 0; n < static_cast<int>(program_.nodes.size()); ++n) {
    const Node& node = NodeAt(n);
    bool trained = IsRandom(node) || InPlace(node), from_batch = false;
    ForEachUse(node, [&](const std::string& name) {
      Value& value = values_[name];
      value.uses.push_back(n);
      trained = trained || value.trained;
      from_batch = from_batch || value.from_batch;
    });
    light_[static_cast<size_t>(n)] = !trained && !Numeric(n);
    std::string storage;
    if ((IsView(node) || InPlace(node)) && !node.inputs.empty()) {
      ForEachUse(node.inputs.front().value, [&](const std::string& name) { storage = values_[name].storage; });
    }
    for (const std::string& name : node.outputs) {
      Value& value = values_[name];
      value.node = n;
      value.trained = trained;
      value.from_batch = from_batch;
      value.storage = storage.empty() ? name : storage;
    }
  }
}

absl::Status Divider::CheckSymbols() const {
  for (const Node& node : program_.nodes) {
    for (const std::string& name : node.outputs) {
      std::vector<exported::SymInt> sizes;
      if (const auto meta = program_.tensors.find(name); meta != program_.tensors.end()) sizes = meta->second.sizes;
      if (const auto number = program_.numbers.find(name); number != program_.numbers.end()) sizes = {number->second};
      for (const exported::SymInt& size : sizes) {
        if (size.expression.empty()) continue;
        MEDLEY_ASSIGN_OR_RETURN(const Expression expression, Expression::Parse(size.expression));
        for (const std::string& symbol : expression.symbols()) {
          if (symbol == out_.batch) continue;
          return base::InvalidArgument(
              "'{}' of module '{}' has a size ({}) that follows from the data, not from the batch alone{}{}",
              node.target, node.module_path, size.expression, node.source.empty() ? "" : ": ", node.source);
        }
      }
    }
  }
  return absl::OkStatus();
}

// Nodes from which the result or a buffer's new value follows, and those that change memory.
void Divider::FindUsed() {
  used_.assign(program_.nodes.size(), false);
  std::set<std::string> wanted = {out_.result};
  for (const exported::Output& output : program_.outputs) {
    if (output.kind == exported::OutputKind::kBufferMutation) wanted.insert(output.value);
  }
  for (int n = static_cast<int>(program_.nodes.size()); n-- > 0;) {
    const Node& node = NodeAt(n);
    if (IsAssertion(node) || Numeric(n)) continue;
    const bool changes = InPlace(node) && std::ranges::any_of(values_, [&](const auto& entry) {
                           const std::string storage =
                               values_.at(node.outputs.empty() ? entry.first : node.outputs.front()).storage;
                           return entry.second.storage == storage && wanted.contains(entry.first);
                         });
    const bool needed =
        std::ranges::any_of(node.outputs, [&](const std::string& name) { return wanted.contains(name); });
    if (!needed && !changes) continue;
    used_[static_cast<size_t>(n)] = true;
    ForEachUse(node, [&](const std::string& name) { wanted.insert(name); });
  }
}

void Divider::FindEmbeddings() {
  Tables found = FindTables(program_);
  if (options_.depth == 0 && options_.modules.empty() && !options_.finest) return;
  for (Table& table : found.tables) {
    if (used_[static_cast<size_t>(table.node)]) tables_[table.node] = std::move(table);
  }
  out_.warnings = std::move(found.notes);
}

bool Divider::UsesOwned(int node) const {
  bool owned = false;
  ForEachUse(NodeAt(node), [&](const std::string& name) {
    const Input* const input = values_.at(name).input;
    owned = owned || (input != nullptr && IsOwned(*input));
  });
  return owned;
}

}  // namespace medley::worker::cut
