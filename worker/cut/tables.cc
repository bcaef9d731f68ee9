#include "worker/cut/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "worker/cut/uses.h"

namespace medley::worker::cut {
namespace {

using exported::Argument;
using exported::Input;
using exported::InputKind;
using exported::Node;
using exported::Program;
using exported::StoredTensor;

bool IsTrue(const Node& node, std::string_view argument) {
  const Argument* const found = ArgumentOf(node, argument);
  const auto* const value = found == nullptr ? nullptr : std::get_if<bool>(found);
  return value != nullptr && *value;
}

// Its result has all elements of its first argument, and no others.
bool KeepsAll(const Node& node) {
  static const std::set<std::string_view> kCalls = {"view",    "reshape",    "_unsafe_view", "flatten", "unflatten",
                                                    "squeeze", "unsqueeze",  "transpose",    "t",       "permute",
                                                    "detach",  "contiguous", "alias"};
  return kCalls.contains(CallOf(node)) && node.outputs.size() == 1 && !node.inputs.empty();
}

const std::string* RefTo(const Argument* argument) {
  const auto* const ref = argument == nullptr ? nullptr : std::get_if<exported::ValueRef>(argument);
  return ref == nullptr ? nullptr : &ref->name;
}

class Finder {
 public:
  explicit Finder(const Program& program) : program_(program) {
    for (const Input& input : program.inputs) inputs_[input.value] = &input;
    for (int n = 0; n < static_cast<int>(program.nodes.size()); ++n) {
      const Node& node = program.nodes[static_cast<size_t>(n)];
      for (const std::string& name : node.outputs) makers_[name] = n;
      if (AsksOnly(node)) continue;
      ForEachUse(node, [&](const std::string& name) { users_[name].insert(n); });
    }
    for (const exported::Output& output : program.outputs) users_[output.value].insert(-1);
    for (const auto& [name, stored] : program.stored) ++names_of_storage_[stored.storage];
  }

  Tables Find() const {
    Tables found;
    for (int n = 0; n < static_cast<int>(program_.nodes.size()); ++n) {
      const Node& node = program_.nodes[static_cast<size_t>(n)];
      const bool embeds = CallOf(node) == "embedding" || CallOf(node) == "embedding_bag";
      if (!embeds || !IsTrue(node, "sparse")) continue;
      Table table{.node = n, .parameter = "", .input = ""};
      const std::string why = WhyNot(node, table);
      if (why.empty()) {
        found.tables.push_back(std::move(table));
      } else {
        found.notes.push_back(fmt::format("the embedding '{}' with sparse=True is kept whole by each trainer: {}",
                                          node.module_path.empty() ? "the model" : node.module_path, why));
      }
    }
    return found;
  }

 private:
  // It takes no elements of a tensor: it gives a size, or checks something.
  bool AsksOnly(const Node& node) const {
    return IsAssertion(node) ||
           (!node.outputs.empty() && std::ranges::all_of(node.outputs, [&](const std::string& name) {
             return program_.numbers.contains(name);
           }));
  }
  bool UsedOnce(const std::string& value) const {
    const auto found = users_.find(value);
    return found != users_.end() && found->second.size() == 1;
  }

  // Empty: the call's weight is a table, which this fills in.
  std::string WhyNot(const Node& node, Table& table) const {
    const std::string* const weight = RefTo(ArgumentOf(node, "weight"));
    const auto parameter = weight == nullptr ? inputs_.end() : inputs_.find(*weight);
    if (parameter == inputs_.end() || parameter->second->kind != InputKind::kParameter) {
      return "its weight is computed";
    }
    const auto stored = program_.stored.find(parameter->second->name);
    if (stored == program_.stored.end()) return "its weight is not in the archive";
    const StoredTensor& tensor = stored->second;
    const bool rows = tensor.sizes.size() == 2 && tensor.strides == std::vector<int64_t>{tensor.sizes[1], 1};
    if (!rows || tensor.type != exported::ScalarType::kFloat32) return "its weight is not float32, or not in rows";
    if (!tensor.requires_grad) return "it is frozen";
    if (!UsedOnce(*weight) || names_of_storage_.at(tensor.storage) > 1) return "other calls use its weight";
    if (IsTrue(node, "scale_grad_by_freq")) return "scale_grad_by_freq needs all of the batch";
    if (const Argument* const padding = ArgumentOf(node, "padding_idx"); padding != nullptr) {
      const auto* const row = std::get_if<int64_t>(padding);
      if (row != nullptr && *row >= 0) return "it has a padding_idx";
    }
    const std::string* value = RefTo(ArgumentOf(node, "indices"));
    while (value != nullptr && UsedOnce(*value)) {
      if (const auto input = inputs_.find(*value); input != inputs_.end()) {
        if (input->second->kind != InputKind::kUser) break;
        table.parameter = parameter->second->name;
        table.input = input->second->name;
        return "";
      }
      const auto maker = makers_.find(*value);
      const Node* const view = maker == makers_.end() ? nullptr : &program_.nodes[static_cast<size_t>(maker->second)];
      if (view == nullptr || !KeepsAll(*view)) break;
      value = RefTo(&view->inputs.front().value);
    }
    return "its rows are not an input of the model that nothing else uses";
  }

  const Program& program_;
  std::map<std::string, const Input*> inputs_;  // by value
  std::map<std::string, int> makers_;           // of values: nodes
  std::map<std::string, std::set<int>> users_;  // of values: nodes; -1: the model's outputs
  std::map<int, int> names_of_storage_;
};

}  // namespace

Tables FindTables(const Program& program) { return Finder(program).Find(); }

}  // namespace medley::worker::cut
