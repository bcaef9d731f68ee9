// Tensors in lists, tuples and dictionaries: as attributes of modules, and what operators do with them.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "worker/torchscript/item.h"
#include "worker/torchscript/torch.h"

namespace medley::worker::torchscript {

// The parameters and buffers of a model by their memory: loaded from a file, a list of them holds other tensors of the
// same memory.
class NamedTensors {
 public:
  struct Named {
    at::Tensor tensor;
    std::string name;  // in the module: "lstm.weight_ih_l0"
    bool parameter = false;
  };

  void Add(const torch::jit::Module& module);
  // Null: the model has it under no name.
  const Named* Find(const at::Tensor& tensor) const;

 private:
  using Memory = std::tuple<const void*, std::vector<int64_t>, std::vector<int64_t>>;
  static Memory MemoryOf(const at::Tensor& tensor);
  std::map<Memory, Named> named_;
};

// An attribute that is not one tensor, as an item: a constant, or a list of items where it holds tensors. `of_tensor`
// makes the item of each, from its place: "lstm._flat_weights.0".
Item ItemOfAttribute(const c10::IValue& value, const std::string& path,
                     const std::function<Item(const at::Tensor&, const std::string&)>& of_tensor);

struct ContainerResult {
  Item item;
  std::string refused;  // why it is not followed; empty: it is
};

// What an operator does with a list or a dictionary of items, its first input. nullopt: it does something else.
std::optional<ContainerResult> OnContainer(const std::string& name, const std::vector<Item>& inputs);

}  // namespace medley::worker::torchscript
