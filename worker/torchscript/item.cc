#include "worker/torchscript/item.h"

namespace medley::worker::torchscript {
namespace {

c10::IValue ListAt(const Item& item, size_t run, const c10::TypePtr& type) {
  const auto fill = [&](auto list, const c10::TypePtr& element, const auto& convert) {
    for (const Item& each : *item.items) list.push_back(convert(At(each, run, element)));
    return c10::IValue(std::move(list));
  };
  c10::TypePtr list = type;
  if (const auto optional = list->cast<c10::OptionalType>()) list = optional->getElementType();
  if (const auto tuple = list->cast<c10::TupleType>()) {
    std::vector<c10::IValue> values;
    for (size_t i = 0; i < item.items->size(); ++i)
      values.push_back(At((*item.items)[i], run, tuple->elements().at(i)));
    return c10::ivalue::Tuple::create(std::move(values));
  }
  const auto kind = list->cast<c10::ListType>();
  const c10::TypePtr element = kind == nullptr ? c10::AnyType::get() : kind->getElementType();
  if (element->isSubtypeOf(*c10::TensorType::get())) {
    return fill(c10::List<at::Tensor>(), element, [](const c10::IValue& value) { return value.toTensor(); });
  }
  if (element->isSubtypeOf(*c10::OptionalType::ofTensor())) {
    return fill(c10::List<c10::optional<at::Tensor>>(), element,
                [](const c10::IValue& value) { return value.toOptional<at::Tensor>(); });
  }
  if (element->kind() == c10::TypeKind::IntType) {
    return fill(c10::List<int64_t>(), element, [](const c10::IValue& value) { return value.toInt(); });
  }
  if (element->kind() == c10::TypeKind::FloatType) {
    return fill(c10::List<double>(), element, [](const c10::IValue& value) { return value.toDouble(); });
  }
  if (element->kind() == c10::TypeKind::BoolType) {
    return fill(c10::List<bool>(), element, [](const c10::IValue& value) { return value.toBool(); });
  }
  return fill(c10::impl::GenericList(element), element, [](const c10::IValue& value) { return value; });
}

}  // namespace

c10::IValue At(const Item& item, size_t run, const c10::TypePtr& type) {
  switch (item.kind) {
    case Item::Kind::kTensor:
      return item.tensors[run];
    case Item::Kind::kNumber:
      return item.as_tensor ? c10::IValue(at::scalar_tensor(item.numbers[run], at::kLong)) : item.numbers[run];
    case Item::Kind::kList:
      return ListAt(item, run, type);
    case Item::Kind::kConstant:
      if (item.as_tensor && item.constant.isInt()) return at::scalar_tensor(item.constant.toInt(), at::kLong);
      break;
    case Item::Kind::kObject:
      break;
  }
  return item.constant;
}

}  // namespace medley::worker::torchscript
