#include "cli/run/model_folder.h"

#include <system_error>

#include "cli/run/checkpoints_on_disk.h"
#include "common/base/status.h"
#include "common/object_store/location.h"
#include "kube/json_access.h"
#include "operator/api/job_folder.h"
#include "operator/api/training_job.h"
#include "worker/object_files/open_volume.h"

namespace medley::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kClaim = "medley-run";
constexpr const char* kModelFile = "model.json";  // every exported model has it (docs/use/model.md)

absl::Status FileError(const std::error_code& error, const std::string& what) {
  return error ? base::ErrnoStatus(error.value(), what) : absl::OkStatus();
}

// A link in the exported model would put another file of the user into the copy, which may be published.
absl::Status CheckPlainFiles(const fs::path& folder) {
  std::error_code error;
  for (auto at = fs::recursive_directory_iterator(folder, error); at != fs::end(at); at.increment(error)) {
    const fs::file_status status = at->symlink_status(error);
    if (error || fs::is_regular_file(status) || fs::is_directory(status)) continue;
    return base::PermissionDenied("the exported model has {}, which is neither a file nor a folder; it is not copied",
                                  at->path().string());
  }
  return FileError(error, "reading the folder " + folder.string());
}

}  // namespace

bool EnsureCheckpointVolume(kube::Object& job) {
  const kube::Json& checkpoint = job.At("/spec/checkpoint");
  if (checkpoint.is_object() && (checkpoint.contains("volume") || checkpoint.contains("uri"))) return false;
  kube::Json& spec = job.mutable_json()["spec"];
  if (!spec.is_object() || (spec.contains("checkpoint") && !spec["checkpoint"].is_object())) return false;
  spec["checkpoint"]["volume"] = {{"persistentVolumeClaim", {{"claimName", kClaim}}}, {"mountPath", "/checkpoints"}};
  return true;
}

absl::StatusOr<fs::path> ExportFolderOf(const kube::Object& job, const fs::path& claims) {
  MEDLEY_ASSIGN_OR_RETURN(const ops::TrainingJob parsed, ops::TrainingJob::FromObject(job));
  if (!parsed.checkpoint_uri.empty()) return ops::CheckpointUri(parsed.checkpoint_uri, job) + "/export";
  if (!parsed.checkpoint_volume) return base::FailedPrecondition("the job has no checkpoint volume");
  const kube::Json& source = parsed.checkpoint_volume->source;
  fs::path volume;
  if (source.contains("persistentVolumeClaim")) {
    volume = claims / job.key().ns / kube::GetString(source["persistentVolumeClaim"], "claimName");
  } else if (source.contains("hostPath")) {
    volume = kube::GetString(source["hostPath"], "path");
  } else {
    return base::FailedPrecondition("the checkpoint volume is neither a persistentVolumeClaim nor a hostPath");
  }
  return volume / ops::JobFolder(job) / "export";
}

absl::Status CheckModelFolder(const fs::path& to) {
  std::error_code error;
  if (!fs::exists(to, error) || fs::exists(to / kModelFile, error)) return absl::OkStatus();
  if (fs::is_directory(to, error) && fs::is_empty(to, error)) return absl::OkStatus();
  return base::AlreadyExists("{} exists and is not a model; name another folder with --export", to.string());
}

absl::Status PlaceModel(const fs::path& made, const fs::path& to) {
  std::error_code error;
  fs::remove_all(to, error);
  MEDLEY_RETURN_IF_ERROR(FileError(error, "removing the earlier model in " + to.string()));
  fs::rename(made, to, error);
  return FileError(error, "renaming " + made.string());
}

absl::Status CopyModel(const fs::path& from, const fs::path& to) {
  std::error_code error;
  if (!fs::exists(from / kModelFile, error)) return base::NotFound("the job has exported no model");
  fs::path temporary = to;
  temporary += ".tmp";
  fs::remove_all(temporary, error);
  MEDLEY_RETURN_IF_ERROR(FileError(error, "removing " + temporary.string()));
  if (to.has_parent_path()) fs::create_directories(to.parent_path(), error);
  MEDLEY_RETURN_IF_ERROR(FileError(error, "creating the folder of " + to.string()));
  MEDLEY_RETURN_IF_ERROR(CheckPlainFiles(from));
  fs::copy(from, temporary, fs::copy_options::recursive | fs::copy_options::skip_symlinks, error);
  MEDLEY_RETURN_IF_ERROR(FileError(error, "copying the model to " + temporary.string()));
  return PlaceModel(temporary, to);
}

absl::StatusOr<bool> TakeSaved(const kube::Object& job, const fs::path& claims, const fs::path& to) {
  const std::string claim = job.String("/spec/checkpoint/volume/persistentVolumeClaim/claimName");
  if (claim != kClaim) return false;
  const fs::path volume = claims / job.key().ns / claim;
  const std::string own = ops::JobFolder(job);  // Medley's
  std::error_code error;
  fs::create_directories(to, error);
  MEDLEY_RETURN_IF_ERROR(FileError(error, "creating the folder " + to.string()));
  MEDLEY_RETURN_IF_ERROR(CheckPlainFiles(volume));
  for (fs::directory_iterator at(volume, error), end; !error && at != end; at.increment(error)) {
    const fs::directory_entry& entry = *at;
    const std::string name = entry.path().filename().string();
    if (name == own) continue;
    fs::copy(entry.path(), to / name, fs::copy_options::recursive | fs::copy_options::overwrite_existing, error);
    MEDLEY_RETURN_IF_ERROR(FileError(error, "copying " + entry.path().string()));
  }
  MEDLEY_RETURN_IF_ERROR(FileError(error, "reading the folder " + volume.string()));
  return true;
}

absl::Status TakeModelOf(const kube::Object& job, const fs::path& claims, const fs::path& to) {
  MEDLEY_ASSIGN_OR_RETURN(const fs::path from, ExportFolderOf(job, claims));
  if (!object_store::IsRemote(from.string())) return CopyModel(from, to);
  MEDLEY_ASSIGN_OR_RETURN(const worker::Volume volume, CheckpointFolderOf(job, claims));
  fs::path temporary = to;
  temporary += ".tmp";
  std::error_code error;
  fs::remove_all(temporary, error);
  MEDLEY_RETURN_IF_ERROR(FileError(error, "removing " + temporary.string()));
  if (to.has_parent_path()) fs::create_directories(to.parent_path(), error);
  MEDLEY_RETURN_IF_ERROR(FileError(error, "creating the folder of " + to.string()));
  absl::Status fetched = worker::FetchFolder(volume, from, temporary);
  if (fetched.ok() && !fs::exists(temporary / kModelFile, error)) {
    fetched = base::NotFound("the job has exported no model");
  }
  if (fetched.ok()) return PlaceModel(temporary, to);
  fs::remove_all(temporary, error);
  return fetched;
}

}  // namespace medley::cli
