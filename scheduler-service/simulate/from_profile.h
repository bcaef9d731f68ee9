// Durations from what the planners know: the profile of a model (docs/design/simulator.md). Pure.
#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <string>
#include <vector>

#include "common/model/forward.h"
#include "common/model/link_table.h"
#include "common/program/program.h"
#include "scheduler-service/simulate/durations.h"

namespace medley::sched {

// Seconds of an operation on one replica that takes `share` of a step of `samples`, while no CPU quota holds it up: the
// terms of scheduler-service/cost, (1 - alpha) c + alpha c share, for `samples` instead of the profile's batch, without
// the processor time of its synchronisation. `parts`: of QuotaParts. Errors:
// InvalidArgument naming the operation and the pool that it has no profile for.
absl::StatusOr<double> ComputeSeconds(const model::Profile& profile, const std::map<std::string, double>& parts,
                                      int operation, const std::string& pool, double share, int samples);

// Seconds that an operation takes longer on a share of the profile's batch because the profiler divided it into
// micro-batches. A plan without a pipeline does not divide it. 0: unknown.
double MicroBatchesCost(const model::Profile& profile, int operation, const std::string& pool, double share);

// The period of CPU quotas that Kubernetes sets (kubelet's default), where the profile does not say another.
inline constexpr double kQuotaPeriodSeconds = 0.1;

// `samples`: of a step. Where the profile has a link between two pools, messages and reductions follow from their
// bytes; elsewhere from the layers' transferSeconds and syncSeconds. Errors: InvalidArgument naming the operation and
// the pool that it has no profile for, or a value that is negative or not finite.
absl::StatusOr<Durations> DurationsFromProfile(const program::Program& program, const model::Profile& profile,
                                               int samples);

// The links between single devices, instead of the profile's between pools.
struct DeviceLinks {
  const model::LinkTable& table;
  const std::map<std::string, int>& index;  // of a device's id in the table
};

// Those of a cluster.
struct ClusterLinks {
  model::LinkTable table;
  std::map<std::string, int> index;
  // Errors: those of LinkTable::Make.
  static absl::StatusOr<ClusterLinks> Make(const model::Cluster& cluster);
  DeviceLinks View() const { return {table, index}; }  // valid as long as this
};

// Errors: InvalidArgument too for a device that has no index.
absl::StatusOr<Durations> DurationsFromProfile(const program::Program& program, const model::Profile& profile,
                                               int samples, const DeviceLinks& links);

}  // namespace medley::sched
