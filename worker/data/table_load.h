// Reads a table into memory or into a file of samples (sample_file.h).
#pragma once

#include <absl/status/statusor.h>

#include "common/model/job_spec.h"
#include "worker/data/load_options.h"
#include "worker/data/sample_load.h"

namespace medley::worker {

// Errors: those of Dataset::Load.
absl::StatusOr<LoadedSamples> LoadTable(const model::SourceSpec& source, const model::DataSpec& spec,
                                        const Transform* transform, const LoadOptions& options);

}  // namespace medley::worker
