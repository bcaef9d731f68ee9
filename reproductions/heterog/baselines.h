// The planners that HeteroG is compared with (section 6.1): simple replicas, other searches of the same decisions, and
// other systems. graph-random, graph-mcmc, graph-post; ev-ps, ev-ar, cp-ps, cp-ar, horovod in the order in which
// operations become ready; hetpipe.
#pragma once

#include <memory>
#include <vector>

#include "scheduler-service/graph/graph_planners.h"

namespace medley::reproductions::heterog {

std::vector<std::unique_ptr<sched::Planner>> MakeBaselines(const sched::GraphOptions& options = {});

}  // namespace medley::reproductions::heterog
