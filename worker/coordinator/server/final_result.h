// What the coordinator leaves in its container's termination message (common/job_result), for an operator that hears no
// last observation. Thread-safe.
#pragma once

#include <absl/status/status.h>

#include <filesystem>
#include <optional>
#include <string>

#include "common/job_result/job_result.h"
#include "medley/job/v1/coordinator.pb.h"

namespace medley::worker {

// nullopt: the job is not over.
std::optional<job_result::JobResult> ResultOf(const job::v1::Observation& observation, const std::string& job_uid);

// Writes into the file, which a container runtime may have mounted: it is not replaced. Errors: of the file system.
absl::Status WriteResult(const job_result::JobResult& result, const std::filesystem::path& file);

}  // namespace medley::worker
