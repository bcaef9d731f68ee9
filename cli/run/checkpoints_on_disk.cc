#include "cli/run/checkpoints_on_disk.h"

#include "cli/run/model_folder.h"
#include "common/base/status.h"
#include "worker/checkpoint/reader.h"
#include "worker/claim/claims.h"

namespace medley::cli {

absl::StatusOr<std::filesystem::path> CheckpointFolderOf(const kube::Object& job, const std::filesystem::path& claims) {
  MEDLEY_ASSIGN_OR_RETURN(const std::filesystem::path model, ExportFolderOf(job, claims));
  return model.parent_path();
}

std::optional<CheckpointOnDisk> NewestCheckpoint(const std::filesystem::path& job_folder) {
  const worker::Volume volume(job_folder);
  const auto names = worker::ListCheckpointFolders(volume);
  if (!names.ok()) return std::nullopt;
  for (const worker::CheckpointName& name : *names) {
    const std::string folder = worker::CheckpointFolder(name);
    const auto manifest = worker::ReadManifest(volume, folder);
    if (manifest.ok()) return CheckpointOnDisk{manifest->step, job_folder / folder};
  }
  return std::nullopt;
}

absl::StatusOr<int64_t> ClaimedTerm(const std::filesystem::path& job_folder) {
  std::error_code absent;
  if (!std::filesystem::exists(job_folder / "coordinators", absent)) return 0;
  MEDLEY_ASSIGN_OR_RETURN(const worker::Claim newest, worker::Claims(worker::Volume(job_folder)).Newest());
  return newest.term;
}

}  // namespace medley::cli
