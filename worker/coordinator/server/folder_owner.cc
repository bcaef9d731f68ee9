#include "worker/coordinator/server/folder_owner.h"

#include "common/base/status.h"

namespace medley::worker {

absl::StatusOr<FolderOwner> FolderOwner::Claim(Volume volume, std::string instance) {
  if (!instance.empty()) {
    MEDLEY_RETURN_IF_ERROR(volume.files().CreateFolder(volume.root()));
    MEDLEY_RETURN_IF_ERROR(volume.files().WriteAtomic(volume / "owner", instance));
  }
  return FolderOwner(std::move(volume), std::move(instance));
}

absl::Status FolderOwner::Check() const {
  if (instance_.empty()) return absl::OkStatus();
  const absl::StatusOr<std::string> owner = volume_.files().ReadWhole(volume_ / "owner", 1024);
  if (absl::IsNotFound(owner.status())) return absl::OkStatus();  // a user has emptied the folder
  MEDLEY_RETURN_IF_ERROR(owner.status());
  if (*owner == instance_) return absl::OkStatus();
  return base::FailedPrecondition("another coordinator process has taken over {}", volume_.root().string());
}

}  // namespace medley::worker
