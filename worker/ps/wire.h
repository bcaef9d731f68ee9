// Conversion between spans and protobuf `bytes` fields with little-endian values. Internal to worker/ps.
#pragma once

#include <bit>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace medley::worker {

static_assert(std::endian::native == std::endian::little);

template <typename T>
void AppendRaw(std::span<const T> values, std::string& bytes) {
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

template <typename T>
absl::StatusOr<std::vector<T>> ParseRaw(const std::string& bytes, const char* field) {
  if (bytes.size() % sizeof(T) != 0) {
    return base::InvalidArgument("{}: the length of {} bytes is not a multiple of {}", field, bytes.size(), sizeof(T));
  }
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

}  // namespace medley::worker
