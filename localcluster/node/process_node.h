// Runs pods as plain processes of this machine, as a kubelet runs containers. Knows no Medley type.
//
//   pending pods --Scheduler--> bound pods --PodWorker, one per pod--> processes --Supervisor--> exits, logs
//        ^                                        |
//        +------------- API server <--- status ---+
//
// One ProcessNode represents one or more Node objects ("virtual nodes"), for example one for each set of labels that
// pods select. All their processes run on this machine. Each pod has its own loopback address and folder, but processes
// share the machine's file system and network: localcluster/node/README.md describes what this means for volumes.
//
// Thread-safe. Crash-only: Start kills the processes that an earlier start with the same root folder left behind. No
// process outlives this object, not even if this process is killed.
#pragma once

#include <absl/status/status.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "kube/client.h"
#include "localcluster/log_reader.h"

namespace medley::localcluster {

class EmulatedNetwork;

struct VirtualNode {
  std::string name;
  std::map<std::string, std::string> labels;
  // Quantities by resource name ("cpu", "memory", "nvidia.com/gpu"). If cpu or memory is absent, it is unlimited; any
  // other absent resource cannot be requested.
  std::map<std::string, std::string> allocatable;
  // What pods may request besides `allocatable`: room for pods that hold no part of the machine that users count, as
  // a coordinator. It is part of the allocatable of the Node object, not of its capacity.
  std::map<std::string, std::string> besides = {};
  bool has_gpus =
      false;  // its "nvidia.com/gpu" are ProcessNodeOptions::gpus; else they stand for GPUs of other machines
};

// How CPU and memory limits are enforced.
enum class CgroupPolicy {
  kAuto,      // cgroups (v2 or v1) if they are writable, otherwise kOff
  kOff,       // by measuring: stops and continues processes for CPU; RLIMIT_DATA for memory
  kRequired,  // Start fails if cgroups are not writable
};

struct ProcessNodeOptions {
  std::filesystem::path root;      // for pods' folders, logs, process records; created if missing, kept at the end
  std::vector<VirtualNode> nodes;  // at least one, with distinct names
  // Image -> program. "registry/name:tag" is looked up as a whole, then without the tag, then by its last component.
  std::map<std::string, std::filesystem::path> images;
  // The machine's GPUs (Machine::gpus). A container sees those that it requested and no others (CUDA_VISIBLE_DEVICES).
  std::vector<std::string> gpus;
  // Names of this process's own variables that every program gets, beside those of its pod (env_policy.h).
  // LD_LIBRARY_PATH may say where the driver of a GPU is.
  std::vector<std::string> inherit_env = {"LANG", "TZ", "LD_LIBRARY_PATH"};
  std::map<std::string, std::string> environment;  // more of such variables, with their values
  std::string pod_cidr = "127.64.0.0/10";          // inside 127.0.0.0/8
  CgroupPolicy cgroups = CgroupPolicy::kAuto;
  base::nanoseconds cpu_period = base::milliseconds(10);  // of the CFS quota
  base::nanoseconds heartbeat = base::seconds(60);        // of the nodes' Ready condition
  base::nanoseconds restart_backoff = base::seconds(10);  // CrashLoopBackOff: first delay, doubles up to the next
  base::nanoseconds restart_backoff_max = base::seconds(300);
  base::nanoseconds restart_backoff_reset = base::seconds(600);  // a start that ran this long resets the delay
  base::nanoseconds stop_grace = base::seconds(2);               // maximum time between SIGTERM and SIGKILL in Stop
  int64_t log_bytes = int64_t{16} << 20;  // size of one part of a container's log; one older part is kept
  // Each pod has a node of this network, instead of a loopback address, with the links that its annotations ask for
  // (emulation.h). Borrowed; null: none. This thread and its later ones are the network's host.
  EmulatedNetwork* network = nullptr;
  bool keep_pod_folders = false;  // keep the folders and logs of deleted pods, for debugging
  int workers = 4;                // pods reconciled at the same time
  uint64_t seed = 1;              // for jitter
};

class ProcessNode final : public LogReader {
 public:
  // `client` and `clock` are borrowed and must outlive this object.
  ProcessNode(kube::Client& client, base::Clock& clock, ProcessNodeOptions options);
  ~ProcessNode() override;

  // Kills leftover processes, registers the nodes, then watches and runs pods in its own threads. Errors:
  // InvalidArgument (options); FailedPrecondition (cgroups are required but not writable, or another running node uses
  // the root folder); those of the API server if the nodes cannot be registered.
  absl::Status Start();
  // Ends every process within stop_grace, reports their ends, and joins. Idempotent.
  void Stop();

  absl::Status ReadLog(const kube::Key& pod, const LogOptions& options, std::stop_token stop,
                       const std::function<bool(std::string_view)>& sink) override;

  // Sends a signal to the processes of the pod's only container; the pod ends as if the signal had come from outside.
  // Errors: NotFound if the pod does not exist here or is not running.
  absl::Status Signal(const kube::Key& pod, int number);

  // How limits are enforced here: "cgroup v2", "cgroup v1" or "measured use". Call it after Start.
  std::string enforcement() const;

 private:
  class Core;
  std::unique_ptr<Core> core_;
};

}  // namespace medley::localcluster
