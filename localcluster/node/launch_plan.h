// From a container of a pod to the program that is started for it. Pure but for the data source.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "localcluster/node/container_env.h"
#include "localcluster/node/mounts.h"
#include "localcluster/node/spawn.h"

namespace medley::kube {

// The program of `image`, looked up whole, without tag or digest, then as its last part.
// Errors: NotFound lists the images that there are.
absl::StatusOr<std::filesystem::path> FindProgram(const std::map<std::string, std::filesystem::path>& images,
                                                  const std::string& image);

// A command must be the image's program by its file name: other programs are not this node's to run.
// Errors: PermissionDenied.
absl::Status CheckProgram(const std::string& command, const std::filesystem::path& program, const std::string& image);

struct LaunchContext {
  PodFacts facts;
  std::map<std::string, std::string> volumes;  // name -> real path
  std::filesystem::path folder;                // the pod's: the default working folder, and HOME
  std::string container_id;
  std::map<std::string, std::string> inherited;  // variables of the node that every process gets
};

// command, args, env and workingDir expanded and rewritten to real paths.
// Errors: NotFound (ConfigMap, Secret, key), InvalidArgument, PermissionDenied (another program).
absl::StatusOr<SpawnSpec> PlanLaunch(const Object& pod, const Json& container, const std::filesystem::path& program,
                                     const LaunchContext& context, const DataSource& source);

}  // namespace medley::kube
