#include "worker/data/digest.h"

#include <fmt/format.h>

#include <string_view>

#include "common/base/hasher.h"

namespace medley::worker {
namespace {

template <typename T>
std::string_view BytesOf(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace

std::string DigestOf(const Batch& rows, const std::vector<std::string>& classes) {
  base::Hasher hasher;
  hasher.Add(fmt::format("{}/{}/{}/{}/", rows.samples, rows.shape.fields, rows.shape.numerics, rows.shape.labels));
  for (const std::string& name : classes) hasher.Add(fmt::format("{}:{}/", name.size(), name));
  hasher.Add(BytesOf(rows.ids));
  hasher.Add(BytesOf(rows.numerics));
  hasher.Add(BytesOf(rows.labels));
  return hasher.Hex();
}

}  // namespace medley::worker
