// What `medley run` keeps of a run in its folder, so that `medley run --resume` continues it: run.json, written when
// the run starts and whenever its status changes. The training itself is on the job's checkpoint volume.
//
// Values and pure functions but ReadSavedRun and WriteSavedRun, which use the file system.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "kube/object.h"

namespace medley::cli {

inline constexpr char kSavedRunFile[] = "run.json";

struct SavedRun {
  std::filesystem::path manifest;  // absolute
  std::filesystem::path model;     // absolute: the folder for the finished model
  kube::Object job;                // the manifest's, with the UID and the status that it has on the API server
};

// Where a run keeps its state by default: "JOB-run" beside the folder of the model.
std::filesystem::path DefaultRunFolder(const std::filesystem::path& model, const std::string& job);

// nullopt: the folder holds no run. Errors: DataLoss (the file is damaged), those of the file system.
absl::StatusOr<std::optional<SavedRun>> ReadSavedRun(const std::filesystem::path& folder);
// Atomic. Errors: those of the file system.
absl::Status WriteSavedRun(const std::filesystem::path& folder, const SavedRun& run);

// Whether the run can be continued with `job`, the TrainingJob of the manifest now. Errors: FailedPrecondition:
// the run is over, or a field that belongs to the checkpoints differs; the message has the field, the value of the run
// and the value of the manifest.
absl::Status CheckResumable(const SavedRun& run, const kube::Object& job, const std::filesystem::path& manifest);

// The job to create on the new API server: `job` with the UID and the status of the run. `claimed_term`: the largest
// coordinator's term on the checkpoint volume, which may be newer than the status (a run that was killed).
kube::Object ResumedJob(const SavedRun& run, const kube::Object& job, int64_t claimed_term, base::WallTime now);

}  // namespace medley::cli
