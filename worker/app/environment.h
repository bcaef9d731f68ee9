// What a process of a job is told by its pod: environment variables (docs/runtime.md lists them) and the job's spec.
//
// An immutable value. Errors are InvalidArgument naming the variable.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "common/model/job_spec.h"

namespace medley::worker {

struct Environment {
  std::string job_name;
  std::string job_uid;
  std::string member;
  std::string pool;
  std::string token;
  std::string pod_ip;
  std::string coordinator;  // host:port
  int listen_port = 7070;
  int metrics_port = -1;  // -1: none
  std::filesystem::path checkpoint_root;
  model::JobSpec spec;  // URIs rewritten by MEDLEY_PATH_MAP
  std::string spec_json;
};

enum class Need { kSpec, kMember, kCoordinator };

// Gets a variable's value; none when it is not set.
using GetVariable = std::function<std::optional<std::string>(const char* name)>;

// `need` decides what must be there: the profiler only a spec, the coordinator no MEDLEY_COORDINATOR.
absl::StatusOr<Environment> ReadEnvironment(const GetVariable& get, Need need);

// MEDLEY_PATH_MAP "from=to;from=to": the longest `from` that is a prefix of the path (at a '/') is replaced; in file://
// URIs and in plain paths.
std::string MapPath(const std::string& map, const std::string& uri);

}  // namespace medley::worker
