#include "worker/data/digest.h"

#include <fmt/format.h>

#include <span>
#include <string_view>

#include "common/base/hasher.h"
#include "common/base/status.h"
#include "worker/data/block_file.h"

namespace medley::worker {
namespace {

template <typename T>
std::string_view BytesIn(const std::vector<T>& values) {
  return BytesOf(std::span<const T>(values));
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
  hasher.Add(BytesIn(rows.ids));
  hasher.Add(BytesIn(rows.numerics));
  hasher.Add(BytesIn(rows.labels));
  hasher.Add(BytesIn(rows.weights));
  return hasher.Hex();
}

absl::StatusOr<std::string> DigestOf(const TableRows& rows, RowSet set, const SampleShape& shape,
                                     const Transform& transform) {
  base::Hasher hasher;
  AddShape(rows.rows(set), shape, transform.label.classes, hasher);
  const auto add = [&](unsigned parts, auto list) {
    return rows.ForEach(set, parts, [&](const ParsedRows& piece) {
      hasher.Add(BytesIn(piece.*list));
      return absl::OkStatus();
    });
  };
  const auto add_rounded = [&](unsigned parts, auto list) {
    return rows.ForEach(set, parts, [&](const ParsedRows& piece) {
      const std::vector<float> rounded((piece.*list).begin(), (piece.*list).end());
      hasher.Add(BytesIn(rounded));
      return absl::OkStatus();
    });
  };
  MEDLEY_RETURN_IF_ERROR(add(kIds, &ParsedRows::ids));
  MEDLEY_RETURN_IF_ERROR(add_rounded(kNumerics, &ParsedRows::numerics));
  MEDLEY_RETURN_IF_ERROR(add_rounded(kLabels, &ParsedRows::labels));
  MEDLEY_RETURN_IF_ERROR(add(kWeights, &ParsedRows::weights));
  std::vector<double> values;
  for (size_t c = 0; c < transform.columns.size(); ++c) {
    const NumericTransform& column = transform.columns[c];
    if (column.inverse_deviation == 0 || !NeedsDouble(column.mean, 1 / column.inverse_deviation)) continue;
    MEDLEY_RETURN_IF_ERROR(rows.Column(set, c, values));
    hasher.Add(BytesIn(values));
  }
  if (transform.label.log || NeedsDouble(transform.label.mean, transform.label.deviation)) {
    MEDLEY_RETURN_IF_ERROR(add(kLabels, &ParsedRows::labels));
  }
  return hasher.Hex();
}

}  // namespace medley::worker
