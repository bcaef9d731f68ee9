// How a pod starts `medley-worker`: the role is an argument, everything else is in the environment. Pure.
//
// Processes find each other by IP address: each pod has its own IP, and all listen on the same port. The operator waits
// for the coordinator's pod IP and sets "IP:PORT" in the members' environment, so that no DNS is needed. The headless
// Service exists for users and policies only.
#pragma once

#include <string>
#include <vector>

#include "kube/object.h"

namespace medley::ops {

struct WorkerSettings {
  std::string image = "medley-worker:0.1.0";
  int listen_port = 7070;
  int metrics_port = 0;  // 0: off
  // Digests of the tokens that scrapers of coordinators send (http_server::Readers::digests); empty: they need none.
  std::string metrics_token_digests = "";
  bool tls = true;                                   // between the processes of new jobs, and with the operator
  std::string image_pull_policy = "";                // empty: Kubernetes decides by the tag
  std::vector<std::string> image_pull_secrets = {};  // names, in the job's namespace
  // The namespaces of the operator and of metrics scrapers, for the jobs' NetworkPolicies; empty: any.
  std::string operator_namespace = "";
  std::string metrics_namespace = "";
  std::string gpu_image = "";  // of trainers and profilers in pools of class GPU; empty: `image`
};

struct WorkerIdentity {
  std::string job;
  std::string job_uid;
  std::string member;       // pod name
  std::string pool;         // empty for the coordinator
  std::string coordinator;  // "ip:port"; empty for coordinator and profiler
  std::string checkpoint_dir;
  int threads = 1;                   // that the process computes with: whole CPUs of its unit
  int64_t coordinator_term = 0;      // of a coordinator; 0: none
  std::string termination_log = {};  // of a coordinator: its container's terminationMessagePath
  bool is_profiler = false;          // it talks to no other process, and gets no credentials
  bool on_gpu = false;               // its image computes on GPUs, and its unit has one
  double gpu_memory = 0;             // of the unit's GPU (spec.memory of the pool), bytes; 0: not said
};

inline constexpr char kSpecFolder[] = "/etc/medley/spec";
inline constexpr char kCredentialsFolder[] = "/etc/medley/credentials";  // files of the job's Secret (credentials.h)
inline constexpr char kStorageKeysFolder[] = "/etc/medley/storage";      // files of the Secret of spec.storage
// A writable folder; the root file system is read-only. Not /tmp, because localcluster/node rewrites mount paths and
// must not rewrite paths of data under /tmp.
inline constexpr char kTmpFolder[] = "/run/medley/tmp";
// Where the agent of a program is, in a pod whose image is not Medley's.
inline constexpr char kAgentFolder[] = "/run/medley/agent";
inline constexpr char kGpuResource[] = "nvidia.com/gpu";
// For the credentials that the pod is to find (credentials.h); it takes no others.
inline constexpr char kFingerprintVariable[] = "MEDLEY_CREDENTIALS_FINGERPRINT";
inline constexpr char kCoordinatorVariable[] = "MEDLEY_COORDINATOR";
inline constexpr char kSizesVariable[] = "MEDLEY_PROFILE_SIZES";  // of a profiler of a program

// Sets a variable of a container, whatever a template has set.
void SetVariable(const std::string& name, const std::string& value, kube::Json& container);

// The environment variables of the worker's container.
kube::Json WorkerEnv(const WorkerSettings& settings, const WorkerIdentity& identity);

}  // namespace medley::ops
