// Which nodes a local cluster has for the pools of a file.
//
// All pools share one node with the amounts that the machine has. A pool that bears the annotation
// `run.medley.dev/simulate: "true"` gets a node of its own, shared only with other simulated pools of the same
// nodeSelector, which has room for the pool's limit whatever the machine has. What is measured on such a pool is this
// machine's CPU, limited as its units say. Pure.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <vector>

#include "kube/object.h"
#include "localcluster/node/machine.h"
#include "localcluster/node/process_node.h"

namespace medley::cli {

struct LocalNodes {
  std::vector<localcluster::VirtualNode> nodes;
  std::vector<std::string> remarks;  // about pools that are simulated, or no unit of which can run here
  std::vector<std::string> limits;   // about pools of which fewer units fit than their limit says
};

// Errors: InvalidArgument for an annotation that is neither "true" nor "false", and when no pool at all can be used.
// InvalidArgument also for a pool that could not be kept off the machine's node: it selects no label, and its units ask
// for no GPU although its class is GPU. `workers_use_gpus`: whether medley-worker was built for them. `jobs`: how many
// run at once; the node has room for the coordinator of each beside the units.
absl::StatusOr<LocalNodes> NodesFor(const std::vector<kube::Object>& pools, const localcluster::Machine& machine,
                                    bool workers_use_gpus, int jobs = 1);

// Whether one of the pools stands for machines with GPUs.
bool AnyForGpus(const std::vector<kube::Object>& pools);

// Lets simulated pools compute on the CPU (MEDLEY_DEVICE in unit.env) unless they say where.
void SimulateOnCpu(std::vector<kube::Object>& pools);

}  // namespace medley::cli
