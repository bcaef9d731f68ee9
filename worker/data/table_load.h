// Reads a table into memory or into a file of samples (sample_file.h).
#pragma once

#include <absl/status/statusor.h>

#include <array>
#include <memory>

#include "common/model/job_spec.h"
#include "worker/data/batch.h"
#include "worker/data/load_options.h"
#include "worker/data/sample_file.h"

namespace medley::worker {

struct LoadedTable {
  SampleFacts facts;
  std::array<Batch, 2> rows;               // by RowSet; none when they are in the file
  std::shared_ptr<const SampleFile> file;  // null: the rows are in memory
};

// Errors: those of Dataset::Load.
absl::StatusOr<LoadedTable> LoadTable(const model::SourceSpec& source, const model::DataSpec& spec,
                                      const Transform* transform, const LoadOptions& options);

}  // namespace medley::worker
