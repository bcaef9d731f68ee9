// Spans of little-endian values in protobuf `bytes` fields. Internal to worker/ps.
#pragma once

#include <bit>
#include <span>
#include <string>

#include "common/base/status.h"

namespace medley::worker {

static_assert(std::endian::native == std::endian::little);

template <typename T>
void AppendRaw(std::span<const T> values, std::string& bytes) {
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

// The values in `bytes`, which must outlive them. InvalidArgument when the length is not a multiple of a value's.
template <typename T>
absl::StatusOr<std::span<const T>> ViewRaw(const std::string& bytes, const char* field) {
  if (bytes.size() % sizeof(T) != 0) {
    return base::InvalidArgument("{}: the length of {} bytes is not a multiple of {}", field, bytes.size(), sizeof(T));
  }
  // The bytes of a string are at the start of an allocation or, if they are few, behind two words of the string.
  static_assert(alignof(T) <= alignof(std::string));
  return std::span(reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T));
}

// Makes room for `count` values in `bytes`, which the caller writes.
template <typename T>
std::span<T> MakeRoom(size_t count, std::string& bytes) {
  bytes.resize(count * sizeof(T));
  return {reinterpret_cast<T*>(bytes.data()), count};
}

}  // namespace medley::worker
