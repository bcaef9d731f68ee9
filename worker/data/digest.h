// A hash of samples as they were read, before any transform. Pure.
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "common/model/job_spec.h"
#include "worker/data/batch.h"
#include "worker/data/sample_file.h"
#include "worker/data/table_rows.h"
#include "worker/data/transform.h"

namespace medley::worker {

// 32 hexadecimal digits. `classes`: the names of the classes by their numbers.
std::string DigestOf(const Batch& rows, const std::vector<std::string>& classes);

inline constexpr size_t kDigestDigits = 32;

// The same of all samples that were appended to a file, in the order before some were put aside (`aside`, may be null).
// `on_piece` is called after each MiB. Errors: those of SampleFileWriter::Read.
absl::StatusOr<std::string> DigestOf(const SampleFileWriter& file, const model::ValidationSpec* aside,
                                     const std::vector<std::string>& classes, const std::function<void()>& on_piece);

// The same of the rows of a set. Numbers count with float32 precision, which is what `transform` leaves of most; those
// of columns that need more count with all of it. Errors: those of TableRows.
absl::StatusOr<std::string> DigestOf(const TableRows& rows, RowSet set, const SampleShape& shape,
                                     const Transform& transform);

}  // namespace medley::worker
