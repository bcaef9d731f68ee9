#include "worker/coordinator/server/checkpoint_files.h"

#include <algorithm>
#include <set>
#include <utility>

#include "common/base/log.h"
#include "common/base/status.h"
#include "worker/checkpoint/import.h"
#include "worker/checkpoint/reader.h"
#include "worker/checkpoint/settings.h"

namespace medley::worker {

CheckpointFiles::CheckpointFiles(CheckpointFilesOptions options, Volume volume)
    : options_(std::move(options)), volume_(std::move(volume)), claims_(volume_), store_(volume_, options_.job_uid) {}

namespace {

CheckpointPosition PositionOf(const CheckpointManifest& manifest) {
  CheckpointPosition position;
  position.folder = manifest.folder;
  position.generation = manifest.generation;
  position.step = manifest.step;
  position.ledger.set_rows(manifest.rows);
  position.ledger.set_epochs(manifest.data_epochs);
  position.ledger.set_batch_size(manifest.batch_size);
  position.ledger.set_committed_step(manifest.step);
  return position;
}

}  // namespace

absl::StatusOr<CheckpointSearch> CheckpointFiles::Search(const FindCheckpointCommand& command) {
  using Why = RejectedCheckpoint::Why;
  MEDLEY_ASSIGN_OR_RETURN(
      const FoundCheckpoint found,
      FindCheckpoint(volume_, options_.job_uid, options_.model_fingerprint, command.unusable, options_.settings));
  unusable_ = command.unusable;
  CheckpointSearch search;
  for (const RejectedCheckpoint& rejected : found.rejected) {
    if (rejected.why == Why::kUnreadable && !command.reject_unreadable) return base::Unavailable("{}", rejected.reason);
    const bool counts = rejected.why == Why::kUnusable || rejected.why == Why::kUnreadable;
    if (rejected.why == Why::kUnreadable) search.unreadable = true;
    if (counts) search.rejected.push_back(rejected.reason);
    if (rejected.why == Why::kIncomplete) {
      search.incomplete.push_back(
          {ParseCheckpointFolder(rejected.folder).value_or(CheckpointName()).step, rejected.reason});
    }
    if (!counts) base::log::Info("ignored a folder that is no checkpoint of this job", {{"reason", rejected.reason}});
  }
  if (found.manifest) search.newest = PositionOf(*found.manifest);
  if (!search.newest && search.rejected.empty() && !options_.from.empty()) return Import();
  return search;
}

absl::StatusOr<CheckpointSearch> CheckpointFiles::Import() {
  CheckpointSearch search;
  const absl::StatusOr<CheckpointManifest> copied = ImportCheckpoint(
      volume_, options_.from, {options_.job_uid, options_.model_fingerprint, options_.epochs, options_.settings});
  if (absl::IsFailedPrecondition(copied.status())) {
    search.refused = base::Message(copied.status());
    return search;
  }
  MEDLEY_RETURN_IF_ERROR(copied.status());
  MEDLEY_RETURN_IF_ERROR(StillLeads());
  MEDLEY_RETURN_IF_ERROR(store_.Complete(*copied));
  base::log::Info("the job continues from the checkpoint of another job",
                  {{"from", options_.from}, {"step", std::to_string(copied->step)}});
  search.newest = PositionOf(*copied);
  return search;
}

// What a former coordinator writes between this look and its write lies in the folder of its own generation.
absl::Status CheckpointFiles::StillLeads() const { return claims_.Check(options_.claim); }

absl::Status CheckpointFiles::Publish(const WriteManifestCommand& command) {
  MEDLEY_RETURN_IF_ERROR(StillLeads());
  CheckpointManifest manifest;
  manifest.job_uid = options_.job_uid;
  manifest.model_fingerprint = options_.model_fingerprint;
  manifest.settings = options_.settings;
  manifest.generation = command.generation;
  manifest.step = command.step;
  manifest.rows = command.ledger.rows();
  manifest.data_epochs = command.ledger.epochs();
  manifest.batch_size = command.ledger.batch_size();
  manifest.folder = command.folder;
  for (const job::v1::CheckpointFile& file : command.files) {
    manifest.files.push_back({file.name(), file.bytes(), file.digest()});
  }
  MEDLEY_RETURN_IF_ERROR(store_.Complete(manifest));
  if (const absl::Status pruned = Prune(command.best); !pruned.ok()) {
    base::log::Warn("removing old checkpoints failed", {{"error", base::Message(pruned)}});
  }
  return absl::OkStatus();
}

absl::Status CheckpointFiles::Discard(const DiscardCheckpointCommand& command) {
  MEDLEY_RETURN_IF_ERROR(StillLeads());
  const auto manifest = volume_.files().Stat(volume_ / command.folder / "manifest.json");
  if (!absl::IsNotFound(manifest.status())) return manifest.status();
  return volume_.files().RemoveFolder(volume_ / command.folder);
}

absl::StatusOr<CheckpointManifest> CheckpointFiles::ToExport(const ExportCommand& command) const {
  if (!command.folder.empty()) {
    absl::StatusOr<CheckpointManifest> manifest = ReadManifest(volume_, command.folder);
    if (absl::IsNotFound(manifest.status())) return base::DataLoss("{}: it has no manifest", command.folder);
    MEDLEY_RETURN_IF_ERROR(base::Annotate(manifest.status(), command.folder));
    if (manifest->step != command.step || !IsOfModel(*manifest, options_.model_fingerprint, options_.settings)) {
      return base::DataLoss("{}: it is of step {} or of another model, not of step {}", command.folder, manifest->step,
                            command.step);
    }
    MEDLEY_RETURN_IF_ERROR(base::Annotate(VerifyCheckpoint(volume_, *manifest), command.folder));
    return manifest;
  }
  MEDLEY_ASSIGN_OR_RETURN(
      const FoundCheckpoint found,
      FindCheckpoint(volume_, options_.job_uid, options_.model_fingerprint, unusable_, options_.settings));
  if (!found.manifest || found.manifest->step != command.step) {
    return base::DataLoss("the checkpoint of step {}, from which the model is written, cannot be read: {}",
                          command.step, found.rejected.empty() ? "it does not exist" : found.rejected.front().reason);
  }
  return *found.manifest;
}

absl::Status CheckpointFiles::Export(const ExportModel& write, const ExportCommand& command) {
  MEDLEY_RETURN_IF_ERROR(StillLeads());
  MEDLEY_ASSIGN_OR_RETURN(const CheckpointManifest manifest, ToExport(command));
  return write(volume_, manifest, command, [this] { return StillLeads(); });
}

absl::Status CheckpointFiles::Prune(const std::string& best) {
  MEDLEY_RETURN_IF_ERROR(StillLeads());
  std::set<std::string> distrusted;
  for (const auto& [folder, reason] : unusable_) distrusted.insert(folder);
  const absl::Status pruned = store_.Prune(std::max(options_.keep, kLeastKept), distrusted, best);
  for (const std::string& reason : store_.damaged()) {
    base::log::Warn("a checkpoint is damaged; older ones are kept instead", {{"reason", reason}});
  }
  return pruned;
}

}  // namespace medley::worker
