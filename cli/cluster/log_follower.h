// Reads the logs of all pods of a job as one log: either once, ordered by time, or continuously while pods are created
// and deleted.
#pragma once

#include <absl/status/status.h>

#include <functional>
#include <optional>
#include <set>
#include <stop_token>
#include <string>

#include "cli/cluster/connection.h"
#include "cli/cluster/log_lines.h"
#include "common/base/clock.h"

namespace medley::cli {

struct LogChoice {
  std::string job;
  std::string role;          // empty: all roles
  std::optional<int> stage;  // stage in the plan in force (ConfigMap JOB-plan)
  std::optional<int> tail;   // only this number of last lines of each pod
  std::optional<int64_t> since_seconds;
  bool previous = false;  // logs of each container's previous start
  int max_pods = 128;     // most pods to follow at the same time
};

// Gets each line in order; must not block for long. Called by one thread at a time.
using LogSink = std::function<void(const LogLine&)>;
// Gets a sentence about each pod whose log cannot be read. Called by one thread at a time.
using LogNote = std::function<void(const std::string&)>;

// Reads the existing logs and passes their lines on, ordered by time. Errors: those of GetJob and of listing the pods;
// NotFound when no pod matches the choice.
absl::Status ReadLogs(const Cluster& cluster, const LogChoice& choice, const LogSink& sink, const LogNote& note);

// Follows the logs until the job has finished and every log has ended, or until `stop`. Pods that are created later are
// followed from their first line. Passes each line on once, even after a broken connection. Errors: those of ReadLogs,
// at the start only.
absl::Status FollowLogs(const Cluster& cluster, const LogChoice& choice, base::Clock& clock, std::stop_token stop,
                        const LogSink& sink, const LogNote& note);

// Returns the pods that match the choice. `plan` is the ConfigMap JOB-plan or null. Pure; public for tests.
std::vector<kube::Object> ChoosePods(const std::vector<kube::Object>& pods, const LogChoice& choice,
                                     const kube::Object* plan);

}  // namespace medley::cli
