#include "worker/checkpoint/store.h"

#include <algorithm>
#include <set>
#include <utility>

#include "common/base/status.h"
#include "worker/checkpoint/reader.h"

namespace medley::worker {

absl::StatusOr<std::vector<FileStamp>> CheckpointStore::Stamps(const CheckpointManifest& manifest) const {
  std::vector<FileStamp> stamps;
  for (const CheckpointFileEntry& file : manifest.files) {
    const absl::StatusOr<FileStamp> stamp = volume_.files().Stat(volume_ / manifest.folder / file.name);
    if (absl::IsNotFound(stamp.status())) return base::DataLoss("{}: the file does not exist", file.name);
    MEDLEY_RETURN_IF_ERROR(stamp.status());
    stamps.push_back(*stamp);
  }
  return stamps;
}

absl::Status CheckpointStore::Verify(const CheckpointManifest& manifest) {
  MEDLEY_ASSIGN_OR_RETURN(std::vector<FileStamp> stamps, Stamps(manifest));
  const auto before = verified_.find(manifest.folder);
  if (before != verified_.end() && before->second.manifest == manifest && before->second.stamps == stamps) {
    return absl::OkStatus();
  }
  verified_.erase(manifest.folder);
  MEDLEY_RETURN_IF_ERROR(VerifyCheckpoint(volume_, manifest, VerifyBytes::kWhereTheVolumeDoesNot));
  verified_[manifest.folder] = {manifest, std::move(stamps)};
  return absl::OkStatus();
}

absl::Status CheckpointStore::Complete(const CheckpointManifest& manifest) {
  MEDLEY_RETURN_IF_ERROR(base::Annotate(Verify(manifest), manifest.folder));
  MEDLEY_RETURN_IF_ERROR(volume_.files().CreateFolder(volume_ / manifest.folder));
  return volume_.files().WriteAtomic(volume_ / manifest.folder / "manifest.json", ToJson(manifest));
}

absl::Status CheckpointStore::RemoveStrays(const CheckpointManifest& manifest) {
  std::set<std::string> named{"manifest.json"};
  for (const CheckpointFileEntry& file : manifest.files) named.insert(file.name);
  MEDLEY_ASSIGN_OR_RETURN(const std::vector<std::string> names, volume_.files().List(volume_ / manifest.folder));
  absl::Status first;
  for (const std::string& name : names) {  // a stray may be a folder
    if (!named.contains(name)) first.Update(volume_.files().RemoveFolder(volume_ / manifest.folder / name));
  }
  return first;
}

absl::Status CheckpointStore::Prune(int keep, const std::set<std::string>& distrusted, const std::string& best) {
  MEDLEY_ASSIGN_OR_RETURN(std::vector<CheckpointName> names, ListCheckpointFolders(volume_));
  absl::Status first;
  // A member that was killed may have left nothing but uploads that were begun.
  std::set<CheckpointName> unfinished;
  const absl::StatusOr<std::vector<std::string>> uploads = volume_.files().Unfinished(volume_.root());
  first.Update(uploads.status());
  for (const std::string& folder : uploads.ok() ? *uploads : std::vector<std::string>()) {
    const absl::StatusOr<CheckpointName> name = ParseCheckpointFolder(folder);
    if (!name.ok()) continue;
    unfinished.insert(*name);
    if (std::ranges::find(names, *name) == names.end()) names.push_back(*name);
  }
  std::sort(names.rbegin(), names.rend());
  std::vector<std::string> old;  // newest first
  int kept = 0;
  damaged_.clear();
  for (const CheckpointName& name : names) {
    const std::string folder = CheckpointFolder(name);
    const bool enough = kept >= std::max(1, keep);
    const absl::StatusOr<CheckpointManifest> manifest = ReadManifest(volume_, folder);
    const bool incomplete = absl::IsNotFound(manifest.status());
    if (manifest.ok() && manifest->job_uid != job_uid_) continue;
    if (enough || incomplete) {
      if (kept > 0 && folder != best) old.push_back(folder);
      continue;
    }
    if (distrusted.contains(folder)) continue;
    absl::Status status = manifest.status();
    if (status.ok()) status = Verify(*manifest);
    if (absl::IsDataLoss(status)) {
      damaged_.push_back(fmt::format("{}: {}", folder, base::Message(status)));
    } else if (!status.ok()) {
      first.Update(base::Annotate(status, "checking " + folder));
    } else {
      ++kept;
      first.Update(RemoveStrays(*manifest));
      if (unfinished.contains(name)) first.Update(volume_.files().RemoveUnfinished(volume_ / folder));
    }
  }
  // The manifest first, so that a crash leaves nothing that looks complete.
  for (const std::string& folder : old) {
    verified_.erase(folder);
    (void)volume_.files().Remove(volume_ / folder / "manifest.json");  // or RemoveFolder does it
    first.Update(volume_.files().RemoveFolder(volume_ / folder));
  }
  return first;
}

}  // namespace medley::worker
