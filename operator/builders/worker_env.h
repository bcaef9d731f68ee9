// The command line contract of `medley-worker`: its role in the arguments, everything else in the
// environment. Pure.
//
// Processes find each other by address: each pod has an IP of its own and listens on the same port.
// The operator waits for the coordinator's pod IP and puts "IP:PORT" into the members' environment,
// so that no name service is needed; the headless Service is for people and policies.
#pragma once

#include <string>
#include <vector>

#include "kube/object.h"

namespace medley::ops {

struct WorkerSettings {
  std::string image = "medley-worker:0.1.0";
  int listen_port = 7070;
  int metrics_port = 0;                              // 0: off
  std::string image_pull_policy = "";                // empty: Kubernetes decides by the tag
  std::vector<std::string> image_pull_secrets = {};  // names, in the job's namespace
  // Where the NetworkPolicies of jobs look for the operator and for scrapers; empty: everywhere.
  std::string operator_namespace = "";
  std::string metrics_namespace = "";
};

struct WorkerIdentity {
  std::string job;
  std::string job_uid;
  std::string member;       // pod name
  std::string pool;         // empty for the coordinator
  std::string coordinator;  // "ip:port"; empty for coordinator and profiler
  std::string checkpoint_dir;
};

inline constexpr char kSpecFolder[] = "/etc/medley/spec";
// Writable, unlike the root. Not /tmp: nodes that rewrite mount paths must not touch data that lies
// there.
inline constexpr char kTmpFolder[] = "/run/medley/tmp";
inline constexpr char kCoordinatorVariable[] = "MEDLEY_COORDINATOR";

// Entries of a container's env.
kube::Json WorkerEnv(const WorkerSettings& settings, const WorkerIdentity& identity);

}  // namespace medley::ops
