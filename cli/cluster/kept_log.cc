#include "cli/cluster/kept_log.h"

#include <fmt/core.h>

#include "kube/json_access.h"
#include "operator/api/job_folder.h"
#include "operator/api/training_job.h"

namespace medley::cli {

std::string KeptLog(const kube::Object& job) {
  const absl::StatusOr<ops::TrainingJob> parsed = ops::TrainingJob::FromObject(job);
  if (parsed.ok() && !parsed->checkpoint_uri.empty()) {
    return fmt::format("the coordinator's log is kept in {}/logs, and in the finished model as training.log",
                       ops::CheckpointUri(parsed->checkpoint_uri, job));
  }
  if (!parsed.ok() || !parsed->checkpoint_volume) {
    return "the job has no checkpoint volume, so no log outlives its pods";
  }
  std::string volume;
  for (const auto& [kind, source] : parsed->checkpoint_volume->source.items()) {
    if (kind == "name" || !source.is_object()) continue;
    volume = kind;
    for (const char* name : {"claimName", "path"}) {
      const std::string value = kube::GetString(source, name);
      if (!value.empty()) volume += " " + value;
    }
  }
  return fmt::format(
      "the coordinator's log is kept in the folder {}/logs of the checkpoint volume ({}), and in the finished model as "
      "training.log",
      ops::JobFolder(job), volume);
}

}  // namespace medley::cli
