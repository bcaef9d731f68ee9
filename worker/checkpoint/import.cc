#include "worker/checkpoint/import.h"

#include <fmt/ranges.h>

#include <utility>
#include <vector>

#include "common/base/status.h"
#include "worker/checkpoint/reader.h"
#include "worker/checkpoint/settings.h"

namespace medley::worker {
namespace {

namespace fs = std::filesystem;

absl::Status Refuse(const fs::path& from, const std::string& why) {
  return base::FailedPrecondition("spec.checkpoint.from: cannot continue from {}: {}", from.string(), why);
}

struct Origin {
  Volume volume;  // the folder of the checkpoint's job
  CheckpointManifest manifest;
};

// For one named checkpoint.
absl::StatusOr<Origin> ReadOne(const fs::path& from, const Volume& parent, const ImportingJob& job) {
  const std::string folder = from.filename().string();
  const absl::StatusOr<CheckpointManifest> manifest = ReadManifest(parent, folder);
  if (absl::IsNotFound(manifest.status())) return Refuse(from, "no complete checkpoint exists there");
  if (absl::IsDataLoss(manifest.status())) return Refuse(from, base::Message(manifest.status()));
  MEDLEY_RETURN_IF_ERROR(manifest.status());
  if (!job.model_fingerprint.empty() && !IsOfModel(*manifest, job.model_fingerprint, job.settings)) {
    return Refuse(from, WhyOtherSettings(manifest->settings, job.settings));
  }
  const absl::Status verified = VerifyCheckpoint(parent, *manifest);
  if (absl::IsDataLoss(verified)) return Refuse(from, base::Message(verified));
  MEDLEY_RETURN_IF_ERROR(verified);
  return Origin{parent, *manifest};
}

// For a job's folder, its newest.
absl::StatusOr<Origin> ReadNewest(const fs::path& from, const Volume& volume, const ImportingJob& job) {
  const absl::StatusOr<FoundCheckpoint> found = FindCheckpoint(volume, "", job.model_fingerprint, {}, job.settings);
  if (absl::IsNotFound(found.status())) return Refuse(from, "the folder does not exist");
  MEDLEY_RETURN_IF_ERROR(found.status());
  if (found->manifest) return Origin{volume, *found->manifest};
  std::vector<std::string> why;
  for (const RejectedCheckpoint& rejected : found->rejected) {
    if (rejected.why == RejectedCheckpoint::Why::kUnreadable) return base::Unavailable("{}", rejected.reason);
    why.push_back(rejected.reason);
  }
  if (why.empty()) return Refuse(from, "the folder has no checkpoint");
  return Refuse(from, fmt::format("{}", fmt::join(why, "; ")));
}

}  // namespace

absl::StatusOr<CheckpointManifest> ImportCheckpoint(const Volume& to, const fs::path& from, const ImportingJob& job) {
  const fs::path folder = from.filename().empty() ? from.parent_path() : from;
  const bool one = ParseCheckpointFolder(folder.filename().string()).ok();
  MEDLEY_ASSIGN_OR_RETURN(const Origin origin, one ? ReadOne(folder, Volume(folder.parent_path(), to.files()), job)
                                                   : ReadNewest(folder, Volume(folder, to.files()), job));
  CheckpointManifest own = origin.manifest;
  if (own.rows <= 0 || own.batch_size <= 0) return Refuse(folder, "its manifest has no rows or no batch size");
  const int64_t steps_per_epoch = (own.rows - 1) / own.batch_size + 1;
  if (own.step >= steps_per_epoch * job.epochs) {
    return Refuse(folder, fmt::format("it has trained {} epochs, this job trains {}; raise spec.training.epochs",
                                      own.data_epochs, job.epochs));
  }
  if (own.origin_uid.empty()) {  // the copied files keep the header of the job that wrote them
    own.origin_uid = own.job_uid;
    own.origin_generation = own.generation;
  }
  own.job_uid = job.uid;
  own.generation = 0;
  own.data_epochs = job.epochs;
  own.folder = CheckpointFolder({.generation = 0, .step = own.step});
  MEDLEY_RETURN_IF_ERROR(to.files().CreateFolder(to / own.folder));
  for (const CheckpointFileEntry& file : own.files) {
    MEDLEY_RETURN_IF_ERROR(
        CopyFile(to.files(), origin.volume / origin.manifest.folder / file.name, to / own.folder / file.name));
  }
  return own;
}

}  // namespace medley::worker
