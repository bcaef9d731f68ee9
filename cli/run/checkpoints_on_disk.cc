#include "cli/run/checkpoints_on_disk.h"

#include <cstdlib>
#include <string>

#include "cli/run/model_folder.h"
#include "common/base/status.h"
#include "operator/api/training_job.h"
#include "worker/checkpoint/reader.h"
#include "worker/claim/claims.h"
#include "worker/object_files/open_volume.h"

namespace medley::cli {
namespace {

// What the job's pods have: the variables of the user, under what the job says.
object_store::GetVariable StorageVariables(const ops::StorageAccess& storage) {
  return [storage](const char* name) -> std::optional<std::string> {
    const std::string wanted = name;
    if (wanted == "AWS_ENDPOINT_URL_S3" && !storage.endpoint.empty()) return storage.endpoint;
    if (wanted == "AWS_REGION" && !storage.region.empty()) return storage.region;
    if (wanted == "MEDLEY_S3_PATH_STYLE" && storage.path_style) return "1";
    if (wanted == "MEDLEY_STORAGE_CA" && !storage.ca_bundle.empty()) return storage.ca_bundle;
    const char* const value = std::getenv(name);
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
}

}  // namespace

absl::StatusOr<worker::Volume> CheckpointFolderOf(const kube::Object& job, const std::filesystem::path& claims) {
  MEDLEY_ASSIGN_OR_RETURN(const std::filesystem::path model, ExportFolderOf(job, claims));
  MEDLEY_ASSIGN_OR_RETURN(const ops::TrainingJob parsed, ops::TrainingJob::FromObject(job));
  return worker::OpenVolume(model.parent_path(), StorageVariables(parsed.storage));
}

std::optional<CheckpointOnDisk> NewestCheckpoint(const worker::Volume& volume) {
  const auto names = worker::ListCheckpointFolders(volume);
  if (!names.ok()) return std::nullopt;
  for (const worker::CheckpointName& name : *names) {
    const std::string folder = worker::CheckpointFolder(name);
    const auto manifest = worker::ReadManifest(volume, folder);
    if (manifest.ok()) return CheckpointOnDisk{manifest->step, volume / folder};
  }
  return std::nullopt;
}

absl::StatusOr<int64_t> ClaimedTerm(const worker::Volume& volume) {
  MEDLEY_ASSIGN_OR_RETURN(const worker::Claim newest, worker::Claims(volume).Newest());
  return newest.term;
}

}  // namespace medley::cli
