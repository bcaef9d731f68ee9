#include "cli/run/prepare_folder.h"

#include <system_error>
#include <utility>

#include "cli/run/checkpoints_on_disk.h"
#include "cli/run/run_folder.h"
#include "cli/run/stop_run.h"
#include "common/base/status.h"
#include "operator/api/job_status.h"

namespace medley::cli {
namespace {

namespace fs = std::filesystem;

// What a run writes into its folder (cli/run/local_cluster.h), except the lock.
constexpr const char* kRunFiles[] = {"node", "crds", "operator.log", "scheduler.log", "scheduler.ports", kSavedRunFile};

absl::StatusOr<RunLock> OpenFolder(const fs::path& folder) {
  if (const absl::Status made = MakeRunFolder(folder); !made.ok()) {
    return base::MakeStatus(made.code(), base::Message(made) +
                                             "; the run keeps its checkpoints and logs there: name "
                                             "another folder with --folder");
  }
  return RunLock::Take(folder);
}

// The newest checkpoint of a run that can be continued.
std::optional<CheckpointOnDisk> ContinuableFrom(const SavedRun& run, const fs::path& folder) {
  if (ops::JobStatus::FromJson(run.job.At("/status")).finished()) return std::nullopt;
  const auto volume = CheckpointFolderOf(run.job, ClaimsOf(folder));
  return volume.ok() ? NewestCheckpoint(*volume) : std::nullopt;
}

absl::Status RemoveRun(const fs::path& folder) {
  std::error_code error;
  for (const char* name : kRunFiles) {
    fs::remove_all(folder / name, error);
    if (error) return base::ErrnoStatus(error.value(), "removing " + (folder / name).string() + " of an earlier run");
  }
  return absl::OkStatus();
}

// Renames the folder of the earlier run. `lock` is its lock, and becomes that of the new folder.
absl::Status SetAside(const fs::path& folder, RunLock& lock) {
  fs::path previous = folder;
  previous += ".previous";
  std::error_code error;
  if (fs::exists(previous, error)) {
    const auto older = ReadSavedRun(previous);
    if (!older.ok() || !older->has_value()) {
      return base::FailedPrecondition("{} is in the way of the earlier run's folder and is not one; remove it",
                                      previous.string());
    }
    MEDLEY_RETURN_IF_ERROR(RunLock::Take(previous).status());  // nobody continues it now
    fs::remove_all(previous, error);
    if (error) return base::ErrnoStatus(error.value(), "removing " + previous.string());
  }
  fs::rename(folder, previous, error);
  if (error) return base::ErrnoStatus(error.value(), "renaming " + folder.string());
  MEDLEY_ASSIGN_OR_RETURN(lock, OpenFolder(folder));
  return absl::OkStatus();
}

absl::Status NothingToContinue(const std::string& why) {
  return base::NotFound("nothing to continue: {}. Name the folder of the run with --folder, or begin without --resume",
                        why);
}

absl::Status FindEarlier(const FolderOptions& options, const kube::Object& job, PreparedFolder& prepared) {
  MEDLEY_ASSIGN_OR_RETURN(prepared.earlier, ReadSavedRun(options.folder));
  if (!prepared.earlier) {
    return NothingToContinue(fmt::format("the folder {} holds no run", options.folder.string()));
  }
  MEDLEY_RETURN_IF_ERROR(CheckResumable(*prepared.earlier, job, options.manifest));
  const auto volume = CheckpointFolderOf(prepared.earlier->job, ClaimsOf(options.folder));
  if (!volume.ok()) return base::Annotate(volume.status(), "continuing " + job.key().name);
  const absl::Status listed = volume->files().List(volume->root()).status();
  if (absl::IsNotFound(listed)) {
    return NothingToContinue(
        fmt::format("the run has written nothing to its checkpoint volume, {}", volume->root().string()));
  }
  MEDLEY_RETURN_IF_ERROR(listed);
  MEDLEY_ASSIGN_OR_RETURN(prepared.claimed_term, ClaimedTerm(*volume));
  const auto checkpoint = NewestCheckpoint(*volume);
  prepared.remarks.push_back(
      checkpoint ? fmt::format("continuing from step {}: {}", checkpoint->step, checkpoint->folder.string())
                 : "the run has no checkpoint yet: it begins at its first step");
  return absl::OkStatus();
}

}  // namespace

fs::path ClaimsOf(const fs::path& run_folder) { return run_folder / "node" / "claims"; }

absl::StatusOr<PreparedFolder> PrepareRunFolder(const FolderOptions& options, const kube::Object& job) {
  std::error_code error;
  const bool existed = fs::exists(options.folder, error);
  if (options.resume && !existed) {
    return NothingToContinue(fmt::format("the folder {} does not exist", options.folder.string()));
  }
  MEDLEY_ASSIGN_OR_RETURN(RunLock lock, OpenFolder(options.folder));
  PreparedFolder prepared{std::move(lock), existed, std::nullopt, 0, {}};
  if (options.resume) {
    MEDLEY_RETURN_IF_ERROR(FindEarlier(options, job, prepared));
    return prepared;
  }
  const auto earlier = ReadSavedRun(options.folder);
  if (!earlier.ok() && !absl::IsDataLoss(earlier.status())) return earlier.status();
  if (earlier.ok() && !earlier->has_value()) return prepared;
  if (const auto checkpoint = earlier.ok() ? ContinuableFrom(**earlier, options.folder) : std::nullopt) {
    MEDLEY_RETURN_IF_ERROR(SetAside(options.folder, prepared.lock));
    const std::string previous = options.folder.string() + ".previous";
    prepared.remarks.push_back(
        fmt::format("the run that ended at step {} was not complete; it is kept in {}, until another such run takes "
                    "its place, and continues with: {}",
                    checkpoint->step, previous,
                    ShellCommand({"medley", "run", (*earlier)->manifest.string(), "--resume", "--folder", previous})));
    return prepared;
  }
  if (options.own) MEDLEY_RETURN_IF_ERROR(RemoveRun(options.folder));
  return prepared;
}

}  // namespace medley::cli
