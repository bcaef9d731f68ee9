#include "worker/aten/conversions.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "common/base/status.h"

namespace medley::worker::aten {
namespace {

// Without the Optional around it.
c10::TypePtr Inner(const c10::TypePtr& type) {
  const auto optional = type->cast<c10::OptionalType>();
  return optional != nullptr ? optional->getElementType() : type;
}

absl::StatusOr<c10::IValue> FormatOf(int number) {
  switch (number) {
    case 1:
      return static_cast<int64_t>(at::MemoryFormat::Contiguous);
    case 2:
      return static_cast<int64_t>(at::MemoryFormat::ChannelsLast);
    case 3:
      return static_cast<int64_t>(at::MemoryFormat::ChannelsLast3d);
    case 4:
      return static_cast<int64_t>(at::MemoryFormat::Preserve);
    default:
      return base::InvalidArgument("the memory format {} is not known", number);
  }
}

c10::IValue FloatsOf(const std::vector<double>& values) {
  c10::List<double> list;
  for (const double value : values) list.push_back(value);
  return list;
}

c10::IValue IntsOf(const std::vector<int64_t>& values, const c10::TypePtr& type) {
  const auto element = type != nullptr ? type->cast<c10::ListType>() : nullptr;
  if (element != nullptr && element->getElementType()->kind() == c10::TypeKind::FloatType) {
    return FloatsOf({values.begin(), values.end()});
  }
  c10::List<int64_t> list;
  for (const int64_t value : values) list.push_back(value);
  return list;
}

}  // namespace

at::ScalarType TypeOf(exported::ScalarType type) {
  switch (type) {
    case exported::ScalarType::kUInt8:
      return at::kByte;
    case exported::ScalarType::kInt8:
      return at::kChar;
    case exported::ScalarType::kInt16:
      return at::kShort;
    case exported::ScalarType::kInt32:
      return at::kInt;
    case exported::ScalarType::kInt64:
      return at::kLong;
    case exported::ScalarType::kFloat16:
      return at::kHalf;
    case exported::ScalarType::kFloat32:
      return at::kFloat;
    case exported::ScalarType::kFloat64:
      return at::kDouble;
    case exported::ScalarType::kComplex32:
      return at::kComplexHalf;
    case exported::ScalarType::kComplex64:
      return at::kComplexFloat;
    case exported::ScalarType::kComplex128:
      return at::kComplexDouble;
    case exported::ScalarType::kBool:
      return at::kBool;
    case exported::ScalarType::kBFloat16:
      return at::kBFloat16;
  }
  return at::kFloat;
}

bool TakesOptionalTensors(const c10::Argument& schema) {
  const auto list = Inner(schema.type())->cast<c10::ListType>();
  return list != nullptr && list->getElementType()->kind() == c10::TypeKind::OptionalType;
}

absl::StatusOr<c10::IValue> ConstantOf(const exported::Argument& argument, const c10::Argument* schema,
                                       at::Device place) {
  const c10::TypePtr type = schema != nullptr ? Inner(schema->type()) : nullptr;
  return std::visit(
      [&](const auto& value) -> absl::StatusOr<c10::IValue> {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, exported::None>) {
          return c10::IValue();
        } else if constexpr (std::is_same_v<T, int64_t>) {
          if (type != nullptr && type->kind() == c10::TypeKind::FloatType) return static_cast<double>(value);
          if (type != nullptr && type->kind() == c10::TypeKind::ListType) {  // int[2] takes one number for both
            return IntsOf(std::vector<int64_t>(static_cast<size_t>(std::max(1, schema->N().value_or(1))), value), type);
          }
          return value;
        } else if constexpr (std::is_same_v<T, double> || std::is_same_v<T, bool>) {
          return value;
        } else if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
          return IntsOf(value, type);
        } else if constexpr (std::is_same_v<T, std::vector<double>>) {
          return FloatsOf(value);
        } else if constexpr (std::is_same_v<T, std::vector<bool>>) {
          c10::List<bool> list;
          for (const bool each : value) list.push_back(each);
          return list;
        } else if constexpr (std::is_same_v<T, std::string>) {
          return value;
        } else if constexpr (std::is_same_v<T, exported::ScalarType>) {
          return static_cast<int64_t>(TypeOf(value));
        } else if constexpr (std::is_same_v<T, exported::MemoryFormat>) {
          return FormatOf(value.number);
        } else if constexpr (std::is_same_v<T, exported::Layout>) {
          constexpr int kStrided = 7;
          if (value.number != kStrided) return base::InvalidArgument("the layout {} is not dense", value.number);
          return static_cast<int64_t>(at::Layout::Strided);
        } else if constexpr (std::is_same_v<T, exported::Device>) {
          return place;
        } else {
          return base::InvalidArgument("it is of a type that no operator takes here");
        }
      },
      argument);
}

at::Tensor TensorOf(const exported::StoredTensor& stored) {
  // The bytes in the file may lie at any address, so they are copied first.
  const auto bytes = static_cast<int64_t>(stored.bytes.size());
  const at::Tensor storage = at::empty({bytes}, at::kByte);
  std::copy(stored.bytes.begin(), stored.bytes.end(), static_cast<std::byte*>(storage.data_ptr()));
  const at::ScalarType type = TypeOf(stored.type);
  const auto size = static_cast<int64_t>(exported::BytesOf(stored.type));
  return storage.narrow(0, 0, bytes / size * size)
      .view(type)
      .as_strided(stored.sizes, stored.strides, stored.offset)
      .clone(at::MemoryFormat::Contiguous);
}

void CopyStored(const exported::StoredTensor& stored, std::span<float> to) {
  std::vector<int64_t> dense(stored.sizes.size());  // the strides of a contiguous tensor
  int64_t stride = 1;
  for (size_t d = dense.size(); d-- > 0; stride *= stored.sizes[d]) dense[d] = stride;
  if (stored.type == exported::ScalarType::kFloat32 && stored.strides == dense) {
    const auto first = static_cast<size_t>(stored.offset) * sizeof(float);
    std::memcpy(to.data(), stored.bytes.subspan(first, to.size_bytes()).data(), to.size_bytes());
    return;
  }
  at::from_blob(to.data(), stored.sizes, at::TensorOptions().dtype(at::kFloat)).copy_(TensorOf(stored));
}

bool TakesTensor(const c10::Argument& schema) {
  return schema.type()->isSubtypeOf(*c10::TensorType::get()) ||
         (schema.type()->kind() == c10::TypeKind::OptionalType &&
          schema.type()->isSubtypeOf(*c10::OptionalType::ofTensor()));
}

c10::IValue NumberAsTensor(const c10::IValue& value) {
  if (!value.isInt() && !value.isDouble() && !value.isBool()) return value;
  at::Tensor tensor = value.isInt()      ? at::scalar_tensor(value.toInt(), at::kLong)
                      : value.isDouble() ? at::scalar_tensor(value.toDouble(), at::kDouble)
                                         : at::scalar_tensor(value.toBool(), at::kBool);
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

}  // namespace medley::worker::aten
