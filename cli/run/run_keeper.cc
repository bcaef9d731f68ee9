#include "cli/run/run_keeper.h"

#include "common/base/status.h"
#include "operator/api/resources.h"

namespace medley::cli {
namespace {

constexpr double kEverySeconds = 5;

}  // namespace

absl::Status RunKeeper::Write() {
  MEDLEY_ASSIGN_OR_RETURN(const kube::Object job, client_.Get(ops::TrainingJobs(), run_.job.key()));
  kube::Json& json = run_.job.mutable_json();
  for (const char* name : {"uid", "creationTimestamp"}) json["metadata"][name] = job.json()["metadata"].value(name, "");
  json["status"] = job.At("/status");
  return WriteSavedRun(folder_, run_);
}

void RunKeeper::Tick(const Snapshot& view, double seconds) {
  if (view.plan && !planned_) {
    planned_ = true;
    profiles_.Keep(client_);
  }
  if (seconds - written_ < kEverySeconds) return;
  written_ = seconds;
  (void)Write();
}

}  // namespace medley::cli
