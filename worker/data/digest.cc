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

void AddShape(int64_t samples, const SampleShape& shape, const std::vector<std::string>& classes,
              base::Hasher& hasher) {
  hasher.Add(fmt::format("{}/{}/{}/{}/", samples, shape.fields, shape.numerics, shape.labels));
  for (const std::string& name : classes) hasher.Add(fmt::format("{}:{}/", name.size(), name));
}

}  // namespace

std::string DigestOf(const Batch& rows, const std::vector<std::string>& classes) {
  base::Hasher hasher;
  AddShape(rows.samples, rows.shape, classes, hasher);
  hasher.Add(BytesOf(rows.ids));
  hasher.Add(BytesOf(rows.numerics));
  hasher.Add(BytesOf(rows.labels));
  hasher.Add(BytesOf(rows.weights));
  return hasher.Hex();
}

std::string DigestOf(const std::vector<TablePiece>& pieces, const SampleShape& shape, const Transform& transform) {
  base::Hasher hasher;
  int64_t samples = 0;
  for (const TablePiece& piece : pieces) samples += piece.rows.samples;
  AddShape(samples, shape, transform.label.classes, hasher);
  const auto add = [&](const std::vector<double>& values) {
    const std::vector<float> rounded(values.begin(), values.end());
    hasher.Add(BytesOf(rounded));
  };
  for (const TablePiece& piece : pieces) hasher.Add(BytesOf(piece.rows.ids));
  for (const TablePiece& piece : pieces) add(piece.rows.numerics);
  for (const TablePiece& piece : pieces) add(piece.rows.labels);
  for (const TablePiece& piece : pieces) hasher.Add(BytesOf(piece.rows.weights));
  const size_t width = transform.columns.size();
  for (size_t c = 0; c < width; ++c) {
    const NumericTransform& column = transform.columns[c];
    if (column.inverse_deviation == 0 || !NeedsDouble(column.mean, 1 / column.inverse_deviation)) continue;
    for (const TablePiece& piece : pieces) {
      std::vector<double> values;
      for (size_t at = c; at < piece.rows.numerics.size(); at += width) values.push_back(piece.rows.numerics[at]);
      hasher.Add(BytesOf(values));
    }
  }
  if (transform.label.log || NeedsDouble(transform.label.mean, transform.label.deviation)) {
    for (const TablePiece& piece : pieces) hasher.Add(BytesOf(piece.rows.labels));
  }
  return hasher.Hex();
}

}  // namespace medley::worker
