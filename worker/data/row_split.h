// Which rows of the training data are put aside for validation: a pure function of the number of a row, so that every
// trainer of every plan puts the same rows aside.
#pragma once

#include <absl/status/status.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/model/job_spec.h"
#include "worker/data/batch.h"

namespace medley::worker {

// Whether the row with this number is for validation. `row` counts from 0 the rows that can be read, in the order of
// the files. Each row is put aside with the probability `fraction`, in [0, 1].
bool IsForValidation(double fraction, uint64_t seed, int64_t row);

// The same of the rows from number `first` on.
std::vector<bool> ChooseRows(const model::ValidationSpec& spec, int64_t first, int64_t rows);

// Removes the other rows from `values`, which has `width` values a row.
template <typename T>
void KeepRows(const std::vector<bool>& chosen, size_t width, std::vector<T>& values) {
  size_t kept = 0;
  for (size_t row = 0; row < chosen.size(); ++row) {
    if (!chosen[row]) continue;
    const auto first = values.begin() + static_cast<std::ptrdiff_t>(row * width);
    const auto to = values.begin() + static_cast<std::ptrdiff_t>(kept++ * width);
    if (first != to) std::copy(first, first + static_cast<std::ptrdiff_t>(width), to);
  }
  values.resize(kept * width);
}

// Moves the rows for validation out of `rows`, which begin with number `first`. What remains keeps its order.
Batch TakeValidation(const model::ValidationSpec& spec, Batch& rows, int64_t first = 0);

// Both parts must have rows. `path`: of the data, for the message.
absl::Status CheckParts(const model::ValidationSpec& spec, int64_t rows, int64_t validation, const std::string& path);

}  // namespace medley::worker
