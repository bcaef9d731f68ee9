// The configuration of one process of a job: environment variables (worker/app/README.md lists them) and the job's
// spec.
//
// An immutable value. Errors are InvalidArgument naming the variable.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/model/job_spec.h"
#include "worker/checkpoint/files.h"

namespace medley::worker {

// Where models are computed.
enum class DeviceChoice {
  kAuto,  // on a GPU where the program was built for GPUs and sees one, else on the CPU
  kCpu,
  kCuda,  // on a GPU; without one the process fails
};

struct Environment {
  std::string job_name;
  std::string job_uid;
  std::string member;
  std::string pool;
  std::string token;
  std::string ca_certificate;  // of the job's own CA, PEM; empty: the job's processes talk in plain text
  std::string ca_key;
  base::nanoseconds certificate_lifetime = std::chrono::hours(24);  // of this process; renewed before it ends
  std::string pod_ip;
  std::string coordinator;  // host:port
  int listen_port = 7070;
  int metrics_port = -1;              // -1: none
  std::string metrics_token_digests;  // MEDLEY_METRICS_TOKEN_SHA256: of the tokens of its readers; empty: everybody
  int threads = 1;                    // that compute (unit_cpus.h); main() sets it
  int64_t coordinator_term = 0;       // of this coordinator; 0: none
  bool share_memory = true;           // MEDLEY_SHARE_MEMORY (0 or 1): with trainers on this machine
  bool plain_nccl = false;            // MEDLEY_PLAIN_NCCL (0 or 1): NCCL may connect machines of an encrypted job
  bool graphs = true;                 // MEDLEY_GRAPHS (0 or 1): a device may record kernels and do them again
  // MEDLEY_ROWS_AHEAD (0 or 1): trainers ask servers for rows a step ahead; nullopt: those that compute on a device.
  std::optional<bool> rows_ahead;
  // How long a profiler measures (MEDLEY_PROFILE_TIME): ProfilerOptions::budget_seconds.
  base::nanoseconds profile_time = std::chrono::seconds(6);
  std::vector<int> profile_sizes;             // MEDLEY_PROFILE_SIZES: MeasureOptions::sizes
  DeviceChoice device = DeviceChoice::kAuto;  // MEDLEY_DEVICE
  int64_t device_memory = 0;                  // MEDLEY_DEVICE_MEMORY: bytes of the device for the unit; 0: all
  std::filesystem::path checkpoint_root;      // or an address in an object store
  Volume checkpoints;                         // of checkpoint_root; main() opens it
  std::filesystem::path
      termination_log;  // MEDLEY_TERMINATION_LOG: where the coordinator leaves its result; empty: nowhere
  // For rows of large tables: MEDLEY_SAMPLES_DIR, whose files processes share; without it a folder of this process
  // alone, which main() makes.
  std::filesystem::path samples_folder;
  bool samples_shared = true;
  std::string continue_from;  // path of spec.checkpoint.from; empty: none
  std::string spec_json;      // paths of files rewritten by MEDLEY_PATH_MAP
  model::JobSpec spec;        // of spec_json
};

enum class Need { kSpec, kMember, kCoordinator };

// Returns a variable's value, or nullopt when it is not set.
using GetVariable = std::function<std::optional<std::string>(const char* name)>;

// `need` says which variables are required: the profiler needs only a spec, the coordinator needs no
// MEDLEY_COORDINATOR.
absl::StatusOr<Environment> ReadEnvironment(const GetVariable& get, Need need);

// Applies MEDLEY_PATH_MAP ("from=to;from=to") to a file:// URI or a plain path: replaces the longest `from` that is a
// prefix of the path and ends at a '/'.
std::string MapPath(const std::string& map, const std::string& uri);

}  // namespace medley::worker
