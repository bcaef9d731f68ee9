#include "worker/data/row_split.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "common/base/rng.h"
#include "common/base/status.h"

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

}  // namespace

bool IsForValidation(double fraction, uint64_t seed, int64_t row) {
  const uint64_t mixed = base::Mix64(base::Mix64(seed) ^ base::Mix64(static_cast<uint64_t>(row)));
  return std::ldexp(static_cast<double>(mixed >> 11), -53) < fraction;
}

std::vector<bool> ChooseRows(const model::ValidationSpec& spec, int64_t first, int64_t rows) {
  std::vector<bool> chosen(static_cast<size_t>(rows));
  for (int64_t row = 0; row < rows; ++row) {
    chosen[static_cast<size_t>(row)] = IsForValidation(spec.fraction, spec.seed, first + row);
  }
  return chosen;
}

Batch TakeValidation(const model::ValidationSpec& spec, Batch& rows, int64_t first) {
  const std::vector<bool> chosen = ChooseRows(spec, first, rows.samples);
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
