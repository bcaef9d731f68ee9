#include "worker/aten/call_list.h"

#include <algorithm>
#include <array>
#include <exception>
#include <set>
#include <type_traits>
#include <utility>

#include "common/base/status.h"
#include "worker/aten/adapted_calls.h"
#include "worker/aten/conversions.h"
#include "worker/aten/errors.h"
#include "worker/aten/precision.h"
#include "worker/cut/uses.h"
#include "worker/exported/pure_calls.h"

namespace medley::worker::aten {
namespace {

using exported::Node;
using exported::ValueRef;

std::string Where(const Node& node) {
  return fmt::format("'{}' of module '{}'{}{}", node.target, node.module_path.empty() ? "the model" : node.module_path,
                     node.source.empty() ? "" : ": ", node.source);
}

// "aten.add.Tensor" -> the operator aten::add, overload Tensor.
std::optional<c10::OperatorHandle> FindOperator(const std::string& target) {
  const size_t first = target.find('.'), last = target.rfind('.');
  if (first == std::string::npos || first == last) return std::nullopt;
  const std::string overload = target.substr(last + 1);
  const auto found = c10::Dispatcher::singleton().findSchema(
      {target.substr(0, first) + "::" + target.substr(first + 1, last - first - 1),
       overload == "default" ? "" : overload});
  return found.has_value() ? std::optional(*found) : std::nullopt;
}

// Products of matrices and convolutions with one result, of those that PyTorch's autocast computes in bfloat16.
bool IsProduct(std::string_view target) {
  constexpr std::array kProducts = std::to_array<std::string_view>(
      {"linear", "matmul", "mm", "addmm", "bmm", "baddbmm", "addbmm", "einsum", "conv1d", "conv2d", "conv3d",
       "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "scaled_dot_product_attention"});
  constexpr std::string_view kAten = "aten.";
  if (!target.starts_with(kAten)) return false;
  target.remove_prefix(kAten.size());
  return std::ranges::find(kProducts, target.substr(0, target.find('.'))) != kProducts.end();
}

}  // namespace

int CallList::SlotOf(const std::string& value) const {
  const auto found = slots_.find(value);
  return found == slots_.end() ? -1 : found->second;
}

int CallList::Slot(const std::string& value) {
  return slots_.try_emplace(value, static_cast<int>(slots_.size())).first->second;
}

absl::StatusOr<CallList> CallList::Compile(const cut::Cut& cut, const std::vector<int>& nodes,
                                           const std::vector<std::string>& kept, at::Device place) {
  CallList out;
  out.place_ = place;
  out.program_ = cut.program;
  out.batch_ = cut.batch;
  std::set<std::string> made;
  for (const int node : nodes) {
    cut::ForEachUse(cut.program->nodes[static_cast<size_t>(node)], [&](const std::string& name) {
      if (!made.insert(name).second) return;
      if (!cut.program->numbers.contains(name)) out.needed_.push_back(name);
    });
    for (const std::string& name : cut.program->nodes[static_cast<size_t>(node)].outputs) made.insert(name);
    MEDLEY_RETURN_IF_ERROR(out.Add(node));
  }
  for (const std::string& name : kept) out.Slot(name);
  for (const auto& [name, slot] : out.slots_) {
    const auto number = cut.program->numbers.find(name);
    if (number == cut.program->numbers.end()) continue;
    Number& entry = out.numbers_.emplace_back();
    entry.slot = slot;
    entry.fixed = number->second.expression.empty();
    entry.value = number->second.value;
    if (entry.fixed) continue;
    MEDLEY_ASSIGN_OR_RETURN(entry.expression, cut::Expression::Parse(number->second.expression));
  }
  // Values are let go after their last use, except those that others still want.
  std::set<int> keep;
  for (const std::string& name : kept) keep.insert(out.SlotOf(name));
  for (const std::string& name : out.needed_) keep.insert(out.SlotOf(name));
  for (size_t c = out.calls_.size(); c-- > 0;) {
    Call& call = out.calls_[c];
    const auto ends = [&](int slot) {
      if (slot >= 0 && keep.insert(slot).second) call.last.push_back(slot);
    };
    for (const Argument& argument : call.arguments) std::ranges::for_each(argument.slots, ends);
    std::ranges::for_each(call.results, ends);
  }
  return out;
}

absl::Status CallList::Add(int index) {
  const Node& node = program_->nodes[static_cast<size_t>(index)];
  Call call{.node = index, .returns_list = node.returns_list, .product = IsProduct(node.target)};
  if (!exported::IsPureCall(node.target)) {  // the archive's reader has refused it; here it would be called
    return base::InvalidArgument("a model may not call {}", Where(node));
  }
  call.handle = FindOperator(node.target);
  const AdaptedCall* adapted = FindAdapted(node.target, call.handle.has_value());
  if (adapted == nullptr && !call.handle.has_value()) {
    return base::Unimplemented("the operator {} is not known to this LibTorch", Where(node));
  }
  if (adapted == nullptr && cut::IsRandom(node)) {
    return base::Unimplemented("the random operator {} has no form that does not depend on the placement", Where(node));
  }
  std::vector<bool> taken(node.inputs.size(), false);
  // By name, then by place.
  const auto find = [&](std::string_view wanted, size_t place) -> const exported::Argument* {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i].name != wanted) continue;
      taken[i] = true;
      return &node.inputs[i].value;
    }
    if (place < node.inputs.size() && !node.inputs[place].keyword && !taken[place]) {
      taken[place] = true;
      return &node.inputs[place].value;
    }
    return nullptr;
  };
  const auto add = [&](const exported::Argument* from, const c10::Argument* schema, std::string_view argument,
                       const c10::IValue* standard) -> absl::Status {
    // Gradients of rows are added to a dense sum. On a device, making them sparse before costs operators that not every
    // device has.
    const bool dense = argument == "sparse" && !place_.is_cpu();
    if (dense && from != nullptr && std::holds_alternative<bool>(*from)) {
      call.arguments.push_back({.constant = false});
      return absl::OkStatus();
    }
    if (from != nullptr) {
      auto converted = Convert(*from, schema);
      if (!converted.ok()) {
        return base::InvalidArgument("the argument '{}' of {}: {}", argument, Where(node),
                                     base::Message(converted.status()));
      }
      call.arguments.push_back(*std::move(converted));
      return absl::OkStatus();
    }
    if (standard == nullptr) return base::InvalidArgument("the argument '{}' of {} is missing", argument, Where(node));
    call.arguments.push_back({.constant = *standard});
    return absl::OkStatus();
  };
  if (adapted != nullptr) {
    call.handle.reset();
    call.function = adapted->function;
    const size_t required = adapted->arguments.size() - adapted->defaults.size();
    for (size_t i = 0; i < adapted->arguments.size(); ++i) {
      const c10::IValue* standard = i < required ? nullptr : &adapted->defaults[i - required];
      MEDLEY_RETURN_IF_ERROR(add(find(adapted->arguments[i], i), nullptr, adapted->arguments[i], standard));
    }
  } else {
    const std::vector<c10::Argument>& schema = call.handle->schema().arguments();
    for (size_t i = 0; i < schema.size(); ++i) {
      const auto& standard = schema[i].default_value();
      c10::IValue none;
      const bool optional = schema[i].type()->kind() == c10::TypeKind::OptionalType;
      const c10::IValue* otherwise = standard.has_value() ? &*standard : optional ? &none : nullptr;
      MEDLEY_RETURN_IF_ERROR(add(find(schema[i].name(), i), &schema[i], schema[i].name(), otherwise));
    }
  }
  for (size_t i = 0; i < taken.size(); ++i) {
    if (taken[i] || std::holds_alternative<exported::None>(node.inputs[i].value)) continue;
    return base::Unimplemented("the argument '{}' of {} is not known to this LibTorch", node.inputs[i].name,
                               Where(node));
  }
  if (!node.inputs.empty()) {
    cut::ForEachUse(node.inputs.front().value, [&](const std::string& value) {
      const auto meta = program_->tensors.find(value);
      if (meta == program_->tensors.end()) return;
      for (size_t axis = 0; axis < meta->second.sizes.size() && call.batch_axis < 0; ++axis) {
        if (!meta->second.sizes[axis].expression.empty()) call.batch_axis = static_cast<int>(axis);
      }
    });
  }
  for (const std::string& value : node.outputs) call.results.push_back(value.empty() ? -1 : Slot(value));
  calls_.push_back(std::move(call));
  return absl::OkStatus();
}

absl::StatusOr<CallList::Argument> CallList::Convert(const exported::Argument& from, const c10::Argument* schema) {
  Argument out;
  if (const auto* ref = std::get_if<ValueRef>(&from)) {
    out.kind = Argument::Kind::kValue;
    out.slots = {Slot(ref->name)};
    out.tensor = schema != nullptr && TakesTensor(*schema);
    return out;
  }
  if (const auto* refs = std::get_if<std::vector<ValueRef>>(&from)) {
    const bool optional = schema != nullptr && TakesOptionalTensors(*schema);
    out.kind = optional ? Argument::Kind::kOptionalTensors : Argument::Kind::kTensors;
    for (const ValueRef& ref : *refs) out.slots.push_back(Slot(ref.name));
    return out;
  }
  if (const auto* refs = std::get_if<std::vector<std::optional<ValueRef>>>(&from)) {
    out.kind = Argument::Kind::kOptionalTensors;
    for (const auto& ref : *refs) out.slots.push_back(ref.has_value() ? Slot(ref->name) : -1);
    return out;
  }
  if (const auto* items = std::get_if<std::vector<exported::IntOrRef>>(&from)) {
    out.kind = Argument::Kind::kNumbers;
    for (const exported::IntOrRef& item : *items) {
      const auto* ref = std::get_if<ValueRef>(&item);
      out.slots.push_back(ref != nullptr ? Slot(ref->name) : -1);
      out.numbers.push_back(ref != nullptr ? 0 : std::get<int64_t>(item));
    }
    return out;
  }
  MEDLEY_ASSIGN_OR_RETURN(out.constant, ConstantOf(from, schema, place_));
  if (schema != nullptr && TakesTensor(*schema)) out.constant = NumberAsTensor(out.constant);
  return out;
}

c10::IValue CallList::Value(const Argument& argument, const RunContext& context) {
  const auto at = [&](int slot) -> const c10::IValue& { return context.values[static_cast<size_t>(slot)]; };
  switch (argument.kind) {
    case Argument::Kind::kConstant:
      return argument.constant;
    case Argument::Kind::kValue:
      return argument.tensor ? NumberAsTensor(at(argument.slots.front())) : at(argument.slots.front());
    case Argument::Kind::kTensors: {
      c10::List<at::Tensor> list;
      for (const int slot : argument.slots) list.push_back(at(slot).toTensor());
      return list;
    }
    case Argument::Kind::kOptionalTensors: {
      c10::List<c10::optional<at::Tensor>> list;
      for (const int slot : argument.slots) {
        list.push_back(slot < 0 ? c10::optional<at::Tensor>() : c10::optional<at::Tensor>(at(slot).toTensor()));
      }
      return list;
    }
    case Argument::Kind::kNumbers: {
      c10::List<int64_t> list;
      for (size_t i = 0; i < argument.slots.size(); ++i) {
        list.push_back(argument.slots[i] < 0 ? argument.numbers[i] : at(argument.slots[i]).toInt());
      }
      return list;
    }
  }
  return {};
}

absl::Status CallList::Run(RunContext& context) const {
  for (const Number& number : numbers_) {
    int64_t value = number.value;
    if (!number.fixed) {
      MEDLEY_ASSIGN_OR_RETURN(value, number.expression.At({{batch_, context.samples}}));
    }
    context.values[static_cast<size_t>(number.slot)] = value;
  }
  Stack stack;
  for (const Call& call : calls_) {
    stack.clear();
    for (const Argument& argument : call.arguments) stack.push_back(Value(argument, context));
    try {
      const InPrecision precision(place_.type(), call.product ? context.precision : Precision::kFloat32);
      if (call.handle.has_value()) {
        call.handle->callBoxed(&stack);
      } else {
        call.function(context, call.node, call.batch_axis, stack);
      }
      if (call.product && stack.front().isTensor() && stack.front().toTensor().scalar_type() == at::kBFloat16) {
        stack.front() = stack.front().toTensor().to(at::kFloat);
      }
    } catch (const std::exception& error) {
      return FromTorch(error, Where(program_->nodes[static_cast<size_t>(call.node)]));
    }
    const auto set = [&](size_t result, c10::IValue value) {
      if (result < call.results.size() && call.results[result] >= 0) {
        context.values[static_cast<size_t>(call.results[result])] = std::move(value);
      }
    };
    if (call.returns_list) {
      const auto list = stack.front().toTensorList();
      for (size_t i = 0; i < list.size(); ++i) set(i, list.get(i));
    } else {
      for (size_t i = 0; i < stack.size(); ++i) set(i, std::move(stack[i]));
    }
    for (const int slot : call.last) context.values[static_cast<size_t>(slot)] = {};
  }
  return absl::OkStatus();
}

}  // namespace medley::worker::aten
