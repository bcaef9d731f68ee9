#include "worker/torchscript/containers.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace medley::worker::torchscript {
namespace {

Item ConstantOf(c10::IValue value) { return {.kind = Item::Kind::kConstant, .constant = std::move(value)}; }

Item ListOf(std::vector<Item> items) {
  return {.kind = Item::Kind::kList, .items = std::make_shared<std::vector<Item>>(std::move(items))};
}

bool HoldsTensors(const c10::IValue& value) {
  if (value.isTensor()) return true;
  if (value.isTuple()) return std::ranges::any_of(value.toTupleRef().elements(), HoldsTensors);
  if (value.isList()) {
    const c10::List<c10::IValue> list = value.toList();
    return std::any_of(list.begin(), list.end(), [](const c10::IValue& one) { return HoldsTensors(one); });
  }
  if (!value.isGenericDict()) return false;
  for (const auto& entry : value.toGenericDict()) {
    if (HoldsTensors(entry.value())) return true;
  }
  return false;
}

ContainerResult OnDictionary(const std::string& name, const std::vector<Item>& inputs) {
  const Item& all = inputs.front();
  if (name == "aten::len") return {.item = ConstantOf(static_cast<int64_t>(all.keys.size()))};
  std::vector<Item> keys;
  for (const c10::IValue& key : all.keys) keys.push_back(ConstantOf(key));
  if (name == "aten::keys") return {.item = ListOf(std::move(keys))};
  if (name == "aten::values") return {.item = ListOf(*all.items)};
  if (name == "aten::items") {
    std::vector<Item> pairs;
    for (size_t i = 0; i < keys.size(); ++i) pairs.push_back(ListOf({keys[i], (*all.items)[i]}));
    return {.item = ListOf(std::move(pairs))};
  }
  const bool asks = name == "aten::__contains__";
  if ((asks || name == "aten::__getitem__") && inputs.size() > 1 && inputs[1].kind == Item::Kind::kConstant) {
    for (size_t i = 0; i < keys.size(); ++i) {
      if (all.keys[i] == inputs[1].constant) return {.item = asks ? ConstantOf(true) : (*all.items)[i]};
    }
    if (asks) return {.item = ConstantOf(false)};
    return {.refused = "a key that the dictionary lacks"};
  }
  return {.refused = "it does with a dictionary of tensors what is not followed"};
}

}  // namespace

NamedTensors::Memory NamedTensors::MemoryOf(const at::Tensor& tensor) {
  return {tensor.data_ptr(), tensor.sizes().vec(), tensor.strides().vec()};
}

void NamedTensors::Add(const torch::jit::Module& module) {
  for (const auto& entry : module.named_buffers()) {
    if (entry.value.defined()) named_.try_emplace(MemoryOf(entry.value), Named{entry.value, entry.name, false});
  }
  for (const auto& entry : module.named_parameters()) {
    if (entry.value.defined()) named_.try_emplace(MemoryOf(entry.value), Named{entry.value, entry.name, true});
  }
}

const NamedTensors::Named* NamedTensors::Find(const at::Tensor& tensor) const {
  const auto found = named_.find(MemoryOf(tensor));
  return found == named_.end() || tensor.numel() == 0 ? nullptr : &found->second;
}

Item ItemOfAttribute(const c10::IValue& value, const std::string& path,
                     const std::function<Item(const at::Tensor&, const std::string&)>& of_tensor) {
  if (!HoldsTensors(value)) return ConstantOf(value);
  if (value.isTensor()) return value.toTensor().defined() ? of_tensor(value.toTensor(), path) : ConstantOf({});
  Item all = ListOf({});
  const auto add = [&](const c10::IValue& one) {
    all.items->push_back(ItemOfAttribute(one, fmt::format("{}.{}", path, all.items->size()), of_tensor));
  };
  if (value.isGenericDict()) {
    for (const auto& entry : value.toGenericDict()) {
      all.keys.push_back(entry.key());
      add(entry.value());
    }
  } else if (value.isTuple()) {
    for (const c10::IValue& one : value.toTupleRef().elements()) add(one);
  } else {
    for (const c10::IValue& one : value.toList()) add(one);
  }
  return all;
}

std::optional<ContainerResult> OnContainer(const std::string& name, const std::vector<Item>& inputs) {
  if (inputs.empty() || inputs.front().kind != Item::Kind::kList) return std::nullopt;
  const Item& list = inputs.front();
  if (!list.keys.empty()) return OnDictionary(name, inputs);
  const auto size = static_cast<int64_t>(list.items->size());
  if (inputs.size() > 1 && (name == "aten::__getitem__" || name == "prim::TupleIndex")) {
    const Item& at = inputs[1];
    if (at.kind != Item::Kind::kConstant || !at.constant.isInt()) {
      return ContainerResult{.refused = "an index that does not exist or follows from data"};
    }
    const int64_t i = at.constant.toInt() < 0 ? at.constant.toInt() + size : at.constant.toInt();
    if (i < 0 || i >= size) return ContainerResult{.refused = "an index that does not exist or follows from data"};
    return ContainerResult{.item = (*list.items)[static_cast<size_t>(i)]};
  }
  if (inputs.size() > 1 && name == "aten::append") {
    list.items->push_back(inputs[1]);
    return ContainerResult{.item = list};
  }
  if (name == "aten::len") return ContainerResult{.item = ConstantOf(size)};
  if (inputs.size() > 1 && name == "aten::add" && inputs[1].kind == Item::Kind::kList) {
    std::vector<Item> both = *list.items;
    both.insert(both.end(), inputs[1].items->begin(), inputs[1].items->end());
    return ContainerResult{.item = ListOf(std::move(both))};
  }
  return std::nullopt;
}

}  // namespace medley::worker::torchscript
