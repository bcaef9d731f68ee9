#include "worker/cut/cut.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "common/base/status.h"
#include "worker/cut/divider.h"
#include "worker/cut/flops.h"
#include "worker/cut/modes.h"
#include "worker/cut/sizes.h"
#include "worker/cut/uses.h"

namespace medley::worker::cut {
namespace {

using exported::Input;
using exported::InputKind;
using exported::TensorMeta;

}  // namespace

absl::StatusOr<Cut> Divider::Run() {
  MEDLEY_RETURN_IF_ERROR(FindBatch());
  MEDLEY_RETURN_IF_ERROR(FindResult());
  MEDLEY_RETURN_IF_ERROR(CheckModules());
  MEDLEY_ASSIGN_OR_RETURN(out_.removed, CheckModes(program_));
  FindShared();
  Classify();
  MEDLEY_RETURN_IF_ERROR(CheckSymbols());
  MEDLEY_ASSIGN_OR_RETURN(places_, BatchPlaces(program_, out_.batch));
  FindUsed();
  FindEmbeddings();
  Group();
  MergeForbidden();
  MEDLEY_RETURN_IF_ERROR(Build());
  return std::move(out_);
}

std::string Divider::KeyOf(int node) const {
  const std::string& path = NodeAt(node).module_path;
  if (tables_.contains(node)) return path;
  if (options_.finest) return fmt::format("#{}", node);
  if (options_.modules.empty()) return FirstComponents(path, options_.depth);
  std::string longest;
  for (const std::string& module : options_.modules) {
    if (Within(path, module) && module.size() > longest.size()) longest = module;
  }
  return longest;
}

void Divider::Group() {
  for (int n = 0; n < static_cast<int>(program_.nodes.size()); ++n) {
    if (!used_[static_cast<size_t>(n)] || light_[static_cast<size_t>(n)]) continue;
    place_[n] = static_cast<int>(heavy_.size());
    heavy_.push_back(n);
  }
  begins_.assign(heavy_.size(), false);
  std::string current;
  bool in_table = false;  // the operation has a table
  for (size_t i = 0; i < heavy_.size(); ++i) {
    const std::string key = KeyOf(heavy_[i]);
    const bool table = tables_.contains(heavy_[i]);
    // What a module does itself between its parts ("x = relu(x)", "x + y") belongs to what comes before it.
    const bool owner = i > 0 && !options_.finest && (key.empty() || Within(current, key));
    begins_[i] = i == 0 || table || (key != current && !owner) || (in_table && UsesOwned(heavy_[i]));
    if (begins_[i]) {
      current = key;
      in_table = table;
    }
  }
}

void Divider::Join(int first, int last, const std::string& why) {
  bool merged = false;
  for (int i = first + 1; i <= last; ++i) {
    merged = merged || begins_[static_cast<size_t>(i)];
    begins_[static_cast<size_t>(i)] = false;
  }
  if (merged && !why.empty()) out_.warnings.push_back(why);
}

void Divider::MergeForbidden() {
  const auto span_of = [&](const std::vector<int>& nodes) -> std::optional<std::pair<int, int>> {
    int first = static_cast<int>(heavy_.size()), last = kNowhere;
    for (const int node : nodes) {
      const auto found = place_.find(node);
      if (found == place_.end()) continue;
      first = std::min(first, found->second);
      last = std::max(last, found->second);
    }
    return last == kNowhere ? std::nullopt : std::optional(std::pair(first, last));
  };
  const auto join = [&](const std::vector<int>& nodes, const std::string& why) {
    if (const auto span = span_of(nodes); span.has_value()) Join(span->first, span->second, why);
  };
  std::map<std::string, std::vector<int>> by_storage;  // of what is changed in place
  std::map<std::string, std::vector<int>> by_memory;   // uses of owned tensors that are, or may be, the same memory
  std::map<std::string, std::set<std::string>> parts;  // of each memory, the tensors
  for (const auto& [name, value] : values_) {
    if (value.input == nullptr || !IsOwned(*value.input)) continue;
    const auto stored = program_.stored.find(value.input->name);
    const std::string memory =
        stored == program_.stored.end() ? value.input->name : fmt::format("storage {}", stored->second.storage);
    by_memory[memory].insert(by_memory[memory].end(), value.uses.begin(), value.uses.end());
    parts[memory].insert(value.input->kind == InputKind::kParameter ? FirstName(value.input->name) : "");
  }
  // Each operation has a copy of a parameter that several use, whose gradients are added; not of a part of one, nor of
  // a statistic, which passes change.
  for (const auto& [memory, uses] : by_memory) {
    if (parts[memory].size() == 1 && !parts[memory].contains("")) continue;
    join(uses, "operations that share parts of a parameter, or a statistic, are one");
  }
  for (const int node : heavy_) {
    if (!InPlace(NodeAt(node)) || NodeAt(node).inputs.empty()) continue;
    ForEachUse(NodeAt(node).inputs.front().value, [&](const std::string& name) { by_storage[values_[name].storage]; });
  }
  for (auto& [storage, nodes] : by_storage) {
    for (const auto& [name, value] : values_) {
      if (value.storage != storage) continue;
      if (value.node != kNowhere) nodes.push_back(value.node);
      nodes.insert(nodes.end(), value.uses.begin(), value.uses.end());
    }
    join(nodes, "operations that change memory in place are one with those that read it");
  }
  for (const auto& [name, value] : values_) {
    if (value.node == kNowhere || !place_.contains(value.node) || program_.numbers.contains(name)) continue;
    if (BatchAxis(name).has_value() && FloatsPerSample(name).ok()) continue;
    std::vector<int> nodes = value.uses;
    nodes.push_back(value.node);
    join(nodes, fmt::format("operations that exchange '{}', whose samples cannot be divided, are one", name));
  }
}

// The axis along which a crossing can be divided.
std::optional<int> Divider::BatchAxis(const std::string& value) const {
  const auto place = places_.find(value);
  if (place == places_.end() || !place->second.Outermost()) return std::nullopt;
  switch (program_.tensors.at(value).type) {
    case exported::ScalarType::kInt32:  // floats cannot hold all of them
    case exported::ScalarType::kInt64:
    case exported::ScalarType::kComplex32:
    case exported::ScalarType::kComplex64:
    case exported::ScalarType::kComplex128:
      return std::nullopt;
    default:
      return place->second.axis;
  }
}

absl::StatusOr<int64_t> Divider::FloatsPerSample(const std::string& value) const {
  const TensorMeta& meta = program_.tensors.at(value);
  constexpr int64_t kSome = 6, kMore = 12;  // samples
  MEDLEY_ASSIGN_OR_RETURN(const int64_t some, Elements(meta, out_.batch, kSome));
  MEDLEY_ASSIGN_OR_RETURN(const int64_t more, Elements(meta, out_.batch, kMore));
  if (some % kSome != 0 || more != 2 * some) {
    return base::InvalidArgument("'{}' does not grow with the batch", value);
  }
  return some / kSome;
}

// Those that were not merged with an operation that has other parameters.
void Divider::NameTables() {
  for (Operation& operation : out_.operations) {
    for (const int node : operation.nodes) {
      const auto found = tables_.find(node);
      if (found == tables_.end()) continue;
      if (operation.owned == std::vector<std::string>{found->second.parameter}) {
        operation.table = found->second.parameter;
        operation.table_rows = found->second.input;
      } else {
        out_.warnings.push_back(
            fmt::format("the embedding '{}' with sparse=True is kept whole by each trainer: it is one operation with "
                        "other parameters",
                        NodeAt(node).module_path));
      }
    }
  }
}

absl::Status Divider::Build() {
  if (heavy_.empty()) return base::InvalidArgument("the model computes nothing from its inputs");
  std::vector<int> operation_of(program_.nodes.size(), kNowhere);
  int count = 0;
  for (size_t i = 0; i < heavy_.size(); ++i) {
    if (begins_[i]) ++count;
    operation_of[static_cast<size_t>(heavy_[i])] = count - 1;
  }
  out_.operations.resize(static_cast<size_t>(count));
  // Each with the light nodes that it needs.
  std::vector<std::set<int>> nodes(static_cast<size_t>(count));
  std::vector<std::set<std::string>> batch(static_cast<size_t>(count)), owned(static_cast<size_t>(count));
  std::vector<std::set<int>> inputs(static_cast<size_t>(count));
  std::map<std::string, std::set<int>> crossing;  // value -> consumers
  std::vector<int> pending;
  for (const int node : heavy_) {
    const int operation = operation_of[static_cast<size_t>(node)];
    const auto o = static_cast<size_t>(operation);
    pending = {node};
    while (!pending.empty()) {
      const int next = pending.back();
      pending.pop_back();
      if (!nodes[o].insert(next).second) continue;
      ForEachUse(NodeAt(next), [&](const std::string& name) {
        const Value& value = values_.at(name);
        if (value.input != nullptr) {
          if (value.input->kind == InputKind::kUser) batch[o].insert(value.input->name);
          if (IsOwned(*value.input)) owned[o].insert(FirstName(value.input->name));
        } else if (program_.numbers.contains(name)) {
          return;  // follows from the number of samples
        } else if (light_[static_cast<size_t>(value.node)]) {
          pending.push_back(value.node);
        } else if (const int from = operation_of[static_cast<size_t>(value.node)]; from != operation) {
          crossing[name].insert(operation);
          inputs[o].insert(from);
        }
      });
    }
  }
  const Value& result = values_.at(out_.result);
  if (result.node == kNowhere || operation_of[static_cast<size_t>(result.node)] != count - 1) {
    return base::InvalidArgument("the model's output '{}' does not follow from its last operation", out_.result);
  }
  crossing[out_.result];
  for (const exported::Input& input : program_.inputs) {
    if (statistics_.contains(input.name)) out_.statistics.push_back(input.name);
  }
  for (int o = 0; o < count; ++o) {
    const auto index = static_cast<size_t>(o);
    Operation& operation = out_.operations[index];
    operation.nodes.assign(nodes[index].begin(), nodes[index].end());
    operation.inputs.assign(inputs[index].begin(), inputs[index].end());
    operation.batch.assign(batch[index].begin(), batch[index].end());
    for (const Input& input : program_.inputs) {
      if (owned[index].contains(input.name)) operation.owned.push_back(input.name);
    }
    std::set<std::string> types;
    std::optional<std::string> path;
    for (const int node : operation.nodes) {
      if (light_[static_cast<size_t>(node)]) continue;
      const std::string key = options_.finest ? std::string(CallOf(NodeAt(node))) : KeyOf(node);
      if (!path.has_value() || path->empty()) {
        path = key;
      }
      types.insert(NodeAt(node).module_type.substr(NodeAt(node).module_type.rfind('.') + 1));
      MEDLEY_ASSIGN_OR_RETURN(const double flops, FlopsOf(program_, node, out_.batch));
      operation.flops += flops;
      for (const std::string& name : NodeAt(node).outputs) {
        if (!program_.tensors.contains(name)) continue;
        MEDLEY_ASSIGN_OR_RETURN(const int64_t elements, Elements(program_.tensors.at(name), out_.batch, 12));
        operation.activation_floats += elements / 12;
      }
    }
    operation.name = path.value_or("").empty() ? "model" : *path;
    operation.kind = types.size() == 1 ? *types.begin() : "Mixed";
    if (operation.kind.empty()) operation.kind = "Mixed";
    for (const int node : operation.nodes) {
      for (const std::string& name : NodeAt(node).outputs) {
        if (!crossing.contains(name) || light_[static_cast<size_t>(node)]) continue;
        const auto axis = BatchAxis(name);
        const auto floats = FloatsPerSample(name);
        if (!axis.has_value() || !floats.ok()) {
          return base::InvalidArgument("the model's output '{}' has no dimension of the batch", name);
        }
        operation.crossings.push_back(static_cast<int>(out_.crossings.size()));
        out_.crossings.push_back({name, o, *axis, *floats, program_.tensors.at(name).type});
        operation.output_floats += *floats;
      }
    }
  }
  NameTables();
  Operation& last = out_.operations.back();
  if (last.crossings.size() != 1) return base::Internal("the last operation has {} results", last.crossings.size());
  out_.result_floats = last.output_floats;
  // Names are unique.
  std::map<std::string, int> names;
  for (Operation& operation : out_.operations) {
    const int number = ++names[operation.name];
    if (number > 1) operation.name += fmt::format("_{}", number);
  }
  return absl::OkStatus();
}

absl::StatusOr<Cut> Divide(std::shared_ptr<const exported::Program> program, const Options& options) {
  if (options.depth < 0) return base::InvalidArgument("spec.model.cut.depth: {} is negative", options.depth);
  return Divider(std::move(program), options).Run();
}

}  // namespace medley::worker::cut
