#include "cli/run/saved_run.h"

#include <algorithm>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/document/difference.h"
#include "common/document/parse.h"
#include "kube/json_access.h"
#include "operator/api/job_status.h"

namespace medley::cli {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostBytes = 16 << 20;
constexpr int kFormat = 1;

// The API server refuses a change of these fields too, but does not say what changed.
constexpr const char* kFixed[] = {"model", "data", "training", "checkpoint"};

const kube::Json& At(const kube::Json& object, const char* name) {
  static const kube::Json kNothing;
  const auto found = object.is_object() ? object.find(name) : object.end();
  return object.is_object() && found != object.end() ? *found : kNothing;
}

// How often checkpoints are written and how many are kept may change; where they are may not.
kube::Json Fixed(const kube::Object& job, const char* field) {
  kube::Json value = At(job.At("/spec"), field);
  if (field == std::string_view("checkpoint") && value.is_object()) {
    kube::Json place = kube::Json::object();
    for (const char* name : {"volume", "from"}) {
      if (value.contains(name)) place[name] = value[name];
    }
    return place;
  }
  return value;
}

}  // namespace

fs::path DefaultRunFolder(const fs::path& model, const std::string& job) {
  const fs::path path = fs::absolute(model).lexically_normal();
  return (path.has_filename() ? path : path.parent_path()).parent_path() / (job + "-run");
}

absl::StatusOr<std::optional<SavedRun>> ReadSavedRun(const fs::path& folder) {
  const fs::path file = folder / kSavedRunFile;
  const auto text = base::ReadFile(file, kMostBytes);
  if (absl::IsNotFound(text.status())) return std::optional<SavedRun>();
  MEDLEY_RETURN_IF_ERROR(text.status());
  auto json = document::ParseJson(*text);
  if (!json.ok()) return base::DataLoss("{}: {}", file.string(), base::Message(json.status()));
  if (!json->is_object() || At(*json, "format") != kube::Json(kFormat) || !At(*json, "job").is_object()) {
    return base::DataLoss("{} is not the state of a run that this version of medley can read", file.string());
  }
  SavedRun run;
  run.manifest = kube::GetString(*json, "manifest");
  run.model = kube::GetString(*json, "model");
  run.job = kube::Object(std::move((*json)["job"]));
  if (run.job.uid().empty()) return base::DataLoss("{}: the job has no metadata.uid", file.string());
  return std::optional<SavedRun>(std::move(run));
}

absl::Status WriteSavedRun(const fs::path& folder, const SavedRun& run) {
  const kube::Json json = {
      {"format", kFormat}, {"manifest", run.manifest.string()}, {"model", run.model.string()}, {"job", run.job.json()}};
  return base::WriteFileAtomic(folder / kSavedRunFile, kube::Dump(json) + "\n");
}

absl::Status CheckResumable(const SavedRun& run, const kube::Object& job, const fs::path& manifest) {
  if (run.job.key() != job.key()) {
    return base::FailedPrecondition("cannot continue: metadata.name is {} in the run and {} in {}",
                                    run.job.key().ToString(), job.key().ToString(), manifest.string());
  }
  const ops::JobStatus status = ops::JobStatus::FromJson(run.job.At("/status"));
  if (status.conditions.IsTrue(ops::kCompleteCondition)) {
    return base::FailedPrecondition("the run of {} is complete; there is nothing to continue", job.key().name);
  }
  if (const ops::Condition* failed = status.conditions.Find(ops::kFailedCondition);
      failed != nullptr && failed->status == ops::ConditionStatus::kTrue) {
    return base::FailedPrecondition("the run of {} has failed ({}: {}); correct the cause and run it without --resume",
                                    job.key().name, failed->reason, failed->message);
  }
  std::vector<document::Difference> changed;
  for (const char* field : kFixed) {
    for (document::Difference& each :
         document::Differences(Fixed(run.job, field), Fixed(job, field), std::string("spec.") + field)) {
      changed.push_back(std::move(each));
    }
  }
  if (changed.empty()) return absl::OkStatus();
  return base::FailedPrecondition(
      "cannot continue with a changed {}: {}. Undo the change to continue; without --resume the training begins again",
      manifest.string(), document::Sentence(changed, "in the run", "in the file"));
}

kube::Object ResumedJob(const SavedRun& run, const kube::Object& job, int64_t claimed_term, base::WallTime now) {
  kube::Object resumed = job;
  kube::Json& json = resumed.mutable_json();
  const kube::Json& before = run.job.json()["metadata"];
  for (const char* name : {"uid", "creationTimestamp"}) {
    if (before.contains(name)) json["metadata"][name] = before[name];
  }
  // As of a job that was suspended: the operator plans it again, and its coordinator continues from the volume.
  ops::JobStatus status = ops::JobStatus::FromJson(run.job.At("/status"));
  status.conditions = {};
  status.conditions.Set(ops::kSuspendedCondition, ops::ConditionStatus::kTrue, ops::Reason::kSuspended,
                        "The run ended before the job was complete.", 1, now);
  status.coordinator_term = std::max(status.coordinator_term, claimed_term);
  status.replicas = 0;
  json["status"] = status.ToJson();
  return resumed;
}

}  // namespace medley::cli
