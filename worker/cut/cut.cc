#include "worker/cut/cut.h"

#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "common/base/status.h"
#include "worker/cut/batch_place.h"
#include "worker/cut/flops.h"
#include "worker/cut/modes.h"
#include "worker/cut/sizes.h"
#include "worker/cut/tables.h"
#include "worker/cut/uses.h"

namespace medley::worker::cut {
namespace {

using exported::Input;
using exported::InputKind;
using exported::Node;
using exported::Program;
using exported::TensorMeta;

constexpr int kNowhere = -1;

bool IsFloat(exported::ScalarType type) {
  return type == exported::ScalarType::kFloat16 || type == exported::ScalarType::kFloat32 ||
         type == exported::ScalarType::kFloat64 || type == exported::ScalarType::kBFloat16;
}

// "a.b.c" with depth 2 -> "a.b".
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

class Divider {
 public:
  Divider(std::shared_ptr<const Program> program, const Options& options)
      : owner_(std::move(program)), program_(*owner_), options_(options) {}

  absl::StatusOr<Cut> Run() {
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

 private:
  // What is known of a value.
  struct Value {
    int node = kNowhere;  // that defines it; kNowhere: an input
    const Input* input = nullptr;
    bool trained = false;     // follows from parameters, statistics, float inputs or chance
    bool from_batch = false;  // follows from an input of the model
    std::string storage;    // the value whose memory it shares, or may share: itself, or the first of a chain of views
    std::vector<int> uses;  // nodes
  };

  absl::Status FindBatch();
  absl::Status FindResult();
  absl::Status CheckModules() const;
  absl::Status CheckSymbols() const;
  void FindShared();
  const std::string& FirstName(const std::string& name) const;
  void Classify();
  void FindUsed();
  void FindEmbeddings();
  bool UsesOwned(int node) const;
  void Group();
  std::string KeyOf(int node) const;
  void MergeForbidden();
  void Join(int first, int last, const std::string& why);
  absl::Status Build();
  void NameTables();
  std::optional<int> BatchAxis(const std::string& value) const;
  absl::StatusOr<int64_t> FloatsPerSample(const std::string& value) const;
  bool IsOwned(const Input& input) const {
    return input.kind == InputKind::kParameter || statistics_.contains(input.name);
  }
  const Node& NodeAt(int node) const { return program_.nodes[static_cast<size_t>(node)]; }
  bool Numeric(int node) const {
    return std::ranges::all_of(NodeAt(node).outputs,
                               [&](const std::string& name) { return program_.numbers.contains(name); }) &&
           !NodeAt(node).outputs.empty();
  }

  const std::shared_ptr<const Program> owner_;
  const Program& program_;
  const Options options_;
  Cut out_;
  std::map<std::string, Value> values_;
  std::map<std::string, BatchPlace> places_;
  std::set<std::string> statistics_;  // names of buffers
  std::vector<bool> used_;            // by node
  std::vector<bool> light_;           // by node: each operation that needs it computes it
  std::vector<int> heavy_;            // nodes, ascending
  std::vector<bool> begins_;          // by position in heavy_: begins an operation
  std::map<int, int> place_;          // of a heavy node in heavy_
  std::map<int, Table> tables_;       // by node
};

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

}  // namespace

absl::StatusOr<Cut> Divide(std::shared_ptr<const exported::Program> program, const Options& options) {
  if (options.depth < 0) return base::InvalidArgument("spec.model.cut.depth: {} is negative", options.depth);
  return Divider(std::move(program), options).Run();
}

}  // namespace medley::worker::cut
