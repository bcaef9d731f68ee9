// Which rows of the training data are put aside for validation: a pure function of the number of a row, so that every
// trainer of every plan puts the same rows aside.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <string>

#include "common/model/job_spec.h"
#include "worker/data/batch.h"
#include "worker/data/table.h"

namespace medley::worker {

// Whether the row with this number is for validation. `row` counts from 0 the rows that can be read, in the order of
// the files. Each row is put aside with the probability `fraction`, in [0, 1].
bool IsForValidation(double fraction, uint64_t seed, int64_t row);

// Moves the rows for validation out of the table. What remains keeps its order.
ParsedTable TakeValidation(const model::ValidationSpec& spec, const model::SchemaSpec& schema, ParsedTable& table);
Batch TakeValidation(const model::ValidationSpec& spec, Batch& rows);

// Both parts must have rows. `path`: of the data, for the message.
absl::Status CheckParts(const model::ValidationSpec& spec, int64_t rows, int64_t validation, const std::string& path);

}  // namespace medley::worker
