// Plans which program is started for a container, with which arguments and environment. Pure except for the data
// source.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "localcluster/node/container_env.h"
#include "localcluster/node/mounts.h"
#include "localcluster/node/spawn.h"

namespace medley::localcluster {

// The program of `image`. Looks up the whole name, then the name without tag or digest, then its last component.
// Errors: NotFound lists the known images.
absl::StatusOr<std::filesystem::path> FindProgram(const std::map<std::string, std::filesystem::path>& images,
                                                  const std::string& image);

// The command's file name must be that of the image's program; this node runs no other program.
// Errors: PermissionDenied.
absl::Status CheckProgram(const std::string& command, const std::filesystem::path& program, const std::string& image);

struct LaunchContext {
  PodFacts facts;
  std::map<std::string, std::string> volumes;  // volume name -> real path
  std::filesystem::path folder;                // the pod's folder: default working folder and HOME
  std::string container_id;
  std::map<std::string, std::string> inherited;  // variables of the node's environment that every process gets
  std::filesystem::path termination_log;         // stands for the container's terminationMessagePath
  std::string visible_gpus = "";                 // CUDA_VISIBLE_DEVICES; empty: it sees no GPU
};

// Expands command, args, env and workingDir and rewrites their paths to real paths.
// The environment is PATH, HOME, HOSTNAME, CUDA_VISIBLE_DEVICES, what the node inherits on purpose, and what the pod
// says (env_policy.h).
// Errors: NotFound (ConfigMap, Secret, key), InvalidArgument, PermissionDenied (not the image's program, or a refused
// variable).
absl::StatusOr<SpawnSpec> PlanLaunch(const kube::Object& pod, const kube::Json& container,
                                     const std::filesystem::path& program, const LaunchContext& context,
                                     const DataSource& source);

}  // namespace medley::localcluster
