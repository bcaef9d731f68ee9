#include "worker/checkpoint/store.h"

#include <algorithm>
#include <string>
#include <system_error>

#include "common/base/file.h"
#include "common/base/status.h"
#include "worker/checkpoint/reader.h"

namespace medley::worker {
namespace {

absl::StatusOr<std::vector<std::string>> Folders(const std::filesystem::path& root) {
  std::vector<std::string> folders;
  std::error_code error;
  for (std::filesystem::directory_iterator at(root, error), end; !error && at != end; at.increment(error)) {
    std::string name = at->path().filename().string();
    if (StepOfFolder(name).ok()) folders.push_back(std::move(name));
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    return base::ErrnoStatus(error.value(), "listing " + root.string());
  }
  std::sort(folders.begin(), folders.end(),
            [](const std::string& a, const std::string& b) { return *StepOfFolder(a) < *StepOfFolder(b); });
  return folders;
}

absl::Status RemoveFolder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::remove(folder / "manifest.json", error);
  if (!error) std::filesystem::remove_all(folder, error);
  return error ? base::ErrnoStatus(error.value(), "removing " + folder.string()) : absl::OkStatus();
}

}  // namespace

absl::Status CompleteCheckpoint(const std::filesystem::path& root, const CheckpointManifest& manifest) {
  const std::filesystem::path folder = root / manifest.folder;
  for (const CheckpointFileEntry& file : manifest.files) {
    std::error_code error;
    const uintmax_t bytes = std::filesystem::file_size(folder / file.name, error);
    if (error) return base::DataLoss("{}/{}: {}", manifest.folder, file.name, error.message());
    if (bytes != static_cast<uintmax_t>(file.bytes)) {
      return base::DataLoss("{}/{}: length is {} bytes, its writer reported {}", manifest.folder, file.name, bytes,
                            file.bytes);
    }
  }
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return base::ErrnoStatus(error.value(), "creating " + folder.string());
  return base::WriteFileAtomic(folder / "manifest.json", ToJson(manifest));
}

absl::StatusOr<std::vector<CheckpointManifest>> ListCheckpoints(const std::filesystem::path& root) {
  MEDLEY_ASSIGN_OR_RETURN(const std::vector<std::string> folders, Folders(root));
  std::vector<CheckpointManifest> complete;
  for (const std::string& folder : folders) {
    absl::StatusOr<CheckpointManifest> manifest = ReadManifest(root, folder);
    if (manifest.ok()) complete.push_back(*std::move(manifest));
  }
  return complete;
}

absl::Status PruneCheckpoints(const std::filesystem::path& root, int keep) {
  MEDLEY_ASSIGN_OR_RETURN(const std::vector<std::string> folders, Folders(root));
  int complete = 0;
  for (auto at = folders.rbegin(); at != folders.rend(); ++at) {
    const bool whole = ReadManifest(root, *at).ok();
    if (whole) ++complete;
    const bool old = whole ? complete > std::max(1, keep) : complete > 0;
    if (old) MEDLEY_RETURN_IF_ERROR(RemoveFolder(root / *at));
  }
  return absl::OkStatus();
}

}  // namespace medley::worker
