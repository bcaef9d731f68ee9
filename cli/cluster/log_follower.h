// The logs of all pods of a job as one: once in the order of time, or followed while pods come and
// go.
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
  std::string role;          // empty: all
  std::optional<int> stage;  // what pods do by the plan in force, JOB-plan
  std::optional<int> tail;   // lines of each pod
  std::optional<int64_t> since_seconds;
  bool previous = false;  // the start before this one
  int max_pods = 128;     // followed at once
};

// Given each line in order; must not block for long. Called by one thread at a time.
using LogSink = std::function<void(const LogLine&)>;
// A pod whose log cannot be read, in words. The same.
using LogNote = std::function<void(const std::string&)>;

// What there is, by time. Errors: of the job (GetJob) and of listing its pods; NotFound when it has
// no such pods.
absl::Status ReadLogs(const Cluster& cluster, const LogChoice& choice, const LogSink& sink, const LogNote& note);

// Until the job is over and every log has ended, or until `stop`: logs of pods that come later too,
// each from its beginning. Lines come once, also when a connection breaks. Errors: as ReadLogs, at
// the beginning.
absl::Status FollowLogs(const Cluster& cluster, const LogChoice& choice, base::Clock& clock, std::stop_token stop,
                        const LogSink& sink, const LogNote& note);

// The pods of a choice. `plan`: ConfigMap JOB-plan or null. Pure; for tests.
std::vector<kube::Object> ChoosePods(const std::vector<kube::Object>& pods, const LogChoice& choice,
                                     const kube::Object* plan);

}  // namespace medley::cli
