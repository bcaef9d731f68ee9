// Strong ids: ids with different tags have different types.  using JobUid = NamedType<std::string, struct JobUidTag>;
#pragma once

#include <compare>
#include <functional>
#include <utility>

namespace medley::base {

template <typename T, typename Tag>
class NamedType {
 public:
  NamedType() = default;
  explicit NamedType(T value) : value_(std::move(value)) {}
  const T& value() const { return value_; }
  auto operator<=>(const NamedType&) const = default;

 private:
  T value_{};
};

}  // namespace medley::base

template <typename T, typename Tag>
struct std::hash<medley::base::NamedType<T, Tag>> {
  size_t operator()(const medley::base::NamedType<T, Tag>& id) const { return std::hash<T>()(id.value()); }
};
