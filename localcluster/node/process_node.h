// Runs Pods as plain processes of this machine: what a kubelet is to containers. Knows no Medley type.
//
//   pending pods --Scheduler--> bound pods --PodWorker, one a pod--> processes --Supervisor--> exits, logs
//        ^                                        |
//        +------------- API server <--- status ---+
//
// One ProcessNode stands for one or more Node objects ("virtual nodes", one for each set of labels that
// pods may select); all their processes run here. Each pod has its own loopback address and folder.
// Processes share the machine's file system and network: see README.md for what that means for volumes.
//
// Thread-safe. Crash-only: Start ends whatever an earlier life in the same root folder left behind, and
// no process outlives this object, not even when this process is killed.
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

namespace medley::kube {

struct VirtualNode {
  std::string name;
  std::map<std::string, std::string> labels;
  // Quantities by resource name ("cpu", "memory", "nvidia.com/gpu"). A resource that is not named here
  // cannot be asked for, but for cpu and memory, which are then unlimited.
  std::map<std::string, std::string> allocatable;
};

// How limits of cpu and memory are enforced.
enum class CgroupPolicy {
  kAuto,      // cgroups (v2 or v1) where they are writable, else kOff
  kOff,       // cpu: stop and continue by measured use; memory: measured use, and RLIMIT_DATA
  kRequired,  // Start fails where cgroups are not writable
};

struct ProcessNodeOptions {
  std::filesystem::path root;      // pods' folders, logs, process records; made if missing, kept at the end
  std::vector<VirtualNode> nodes;  // at least one, distinct names
  // Image -> program. "registry/name:tag" is looked up whole, then without tag, then as its last part.
  std::map<std::string, std::filesystem::path> images;
  std::vector<std::string> inherit_env = {"PATH", "LD_LIBRARY_PATH", "LANG", "TZ"};
  std::string pod_cidr = "127.64.0.0/10";  // inside 127.0.0.0/8
  CgroupPolicy cgroups = CgroupPolicy::kAuto;
  base::nanoseconds cpu_period = base::milliseconds(10);  // of the CFS quota
  base::nanoseconds heartbeat = base::seconds(60);        // of the nodes' Ready condition
  base::nanoseconds restart_backoff = base::seconds(10);  // CrashLoopBackOff: first, doubling to
  base::nanoseconds restart_backoff_max = base::seconds(300);
  base::nanoseconds restart_backoff_reset = base::seconds(600);  // a start that ran so long resets it
  base::nanoseconds stop_grace = base::seconds(2);               // Stop: between SIGTERM and SIGKILL, at most
  int64_t log_bytes = int64_t{16} << 20;  // of one container's current log; one older part is kept
  bool keep_pod_folders = false;          // leave the logs of deleted pods, for people
  int workers = 4;                        // pods reconciled at the same time
  uint64_t seed = 1;                      // of jitter
};

class ProcessNode final : public LogReader {
 public:
  // `client` and `clock` are borrowed and must outlive this.
  ProcessNode(Client& client, base::Clock& clock, ProcessNodeOptions options);
  ~ProcessNode() override;

  // Ends leftovers, registers the nodes, then watches and runs in threads of its own.
  // Errors: InvalidArgument (options), FailedPrecondition (cgroups required, not writable; the root is
  // used by another living node), and the API server's when the nodes cannot be registered.
  absl::Status Start();
  // Ends every process, within stop_grace, reports it, and joins. Idempotent.
  void Stop();

  absl::Status ReadLog(const Key& pod, const LogOptions& options, std::stop_token stop,
                       const std::function<bool(std::string_view)>& sink) override;

  // Sends a signal to the processes of the pod's only container, as an accident would: the pod ends as if the
  // signal had come from outside. Errors: NotFound (no such pod here, or it does not run).
  absl::Status Signal(const Key& pod, int number);

  // What enforces limits here: "cgroup v2", "cgroup v1", "measured use". After Start.
  std::string enforcement() const;

 private:
  class Core;
  std::unique_ptr<Core> core_;
};

}  // namespace medley::kube
