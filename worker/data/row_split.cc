#include "worker/data/row_split.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "common/base/rng.h"
#include "common/base/status.h"
#include "worker/data/schema.h"

namespace medley::worker {
namespace {

// Appends the values of the chosen rows to `out` and closes the gaps in `values`, which has `width` values a row.
template <typename T>
void MoveRows(const std::vector<bool>& chosen, size_t width, std::vector<T>& values, std::vector<T>& out) {
  size_t kept = 0;
  for (size_t row = 0; row < chosen.size(); ++row) {
    const auto first = values.begin() + static_cast<std::ptrdiff_t>(row * width);
    const auto end = first + static_cast<std::ptrdiff_t>(width);
    if (chosen[row]) {
      out.insert(out.end(), first, end);
    } else {
      if (kept != row) std::copy(first, end, values.begin() + static_cast<std::ptrdiff_t>(kept * width));
      ++kept;
    }
  }
  values.resize(kept * width);
}

// `first`: the number of the first row.
std::vector<bool> Choose(const model::ValidationSpec& spec, int64_t first, int64_t rows) {
  std::vector<bool> chosen(static_cast<size_t>(rows));
  for (int64_t row = 0; row < rows; ++row) {
    chosen[static_cast<size_t>(row)] = IsForValidation(spec.fraction, spec.seed, first + row);
  }
  return chosen;
}

}  // namespace

bool IsForValidation(double fraction, uint64_t seed, int64_t row) {
  const uint64_t mixed = base::Mix64(base::Mix64(seed) ^ base::Mix64(static_cast<uint64_t>(row)));
  return std::ldexp(static_cast<double>(mixed >> 11), -53) < fraction;
}

ParsedTable TakeValidation(const model::ValidationSpec& spec, const model::SchemaSpec& schema, ParsedTable& table) {
  const SampleShape shape = ShapeOf(schema);  // ids have room for those of buckets
  ParsedTable taken;
  taken.header = table.header;
  int64_t first = 0;
  for (TablePiece& piece : table.pieces) {
    const std::vector<bool> chosen = Choose(spec, first, piece.rows.samples);
    first += piece.rows.samples;
    TablePiece& out = taken.pieces.emplace_back();
    out.file = piece.file;
    out.classes = piece.classes;
    MoveRows(chosen, static_cast<size_t>(shape.fields), piece.rows.ids, out.rows.ids);
    MoveRows(chosen, schema.numeric.size(), piece.rows.numerics, out.rows.numerics);
    MoveRows(chosen, static_cast<size_t>(shape.labels), piece.rows.labels, out.rows.labels);
    MoveRows(chosen, piece.rows.weights.empty() ? 0 : 1, piece.rows.weights, out.rows.weights);
    out.rows.samples = static_cast<int>(std::ranges::count(chosen, true));
    piece.rows.samples -= out.rows.samples;
    taken.rows += out.rows.samples;
  }
  table.rows -= taken.rows;
  return taken;
}

Batch TakeValidation(const model::ValidationSpec& spec, Batch& rows) {
  const std::vector<bool> chosen = Choose(spec, 0, rows.samples);
  Batch taken;
  taken.shape = rows.shape;
  MoveRows(chosen, static_cast<size_t>(rows.shape.fields), rows.ids, taken.ids);
  MoveRows(chosen, static_cast<size_t>(rows.shape.numerics), rows.numerics, taken.numerics);
  MoveRows(chosen, static_cast<size_t>(rows.shape.labels), rows.labels, taken.labels);
  MoveRows(chosen, rows.weights.empty() ? 0 : 1, rows.weights, taken.weights);
  taken.samples = static_cast<int>(std::ranges::count(chosen, true));
  rows.samples -= taken.samples;
  return taken;
}

absl::Status CheckParts(const model::ValidationSpec& spec, int64_t rows, int64_t validation, const std::string& path) {
  if (rows > 0 && validation > 0) return absl::OkStatus();
  return base::InvalidArgument(
      "{}: spec.data.validation.fraction {} puts {} of {} rows aside, which leaves none {}; use another fraction, or "
      "more rows",
      path, spec.fraction, validation, rows + validation, rows == 0 ? "for training" : "for validation");
}

}  // namespace medley::worker
