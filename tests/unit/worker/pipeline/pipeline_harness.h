// Runs a whole job in one process: devices are threads that communicate over an in-memory fabric.
#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/model/forward.h"
#include "common/model/job_spec.h"
#include "worker/data/dataset.h"
#include "worker/model/graph.h"
#include "worker/pipeline/executor.h"

namespace medley::worker::testing {

// The operations of each stage, and the shares of its replicas.
struct Layout {
  std::vector<model::OperationRange> stages;
  std::vector<std::vector<double>> shares;
  int micro_batches = 1;
  model::ScheduleKind schedule = model::ScheduleKind::kSync1F1B;
  int64_t bucket_bytes = 0;
  int max_staleness = 0;
  std::set<int64_t> drains = {};         // the steps after which all devices complete what is open, beside the last one
  std::optional<model::Sync> sync = {};  // of the dense parameters, instead of an allreduce
  std::optional<std::set<int64_t>> agreements = {};  // the steps that agree; nullopt: all
  // For models that are not Medley's own; empty: BuildGraph and BlockModel.
  std::function<absl::StatusOr<Graph>(const model::JobSpec&)> graph = {};
  std::function<absl::StatusOr<std::unique_ptr<BlockCompute>>(const Graph&, model::OperationRange, const Optimizer&,
                                                              uint64_t seed, int kept_updates)>
      block = {};
  BlockOrder blocks = {};  // in which the data are shuffled
};

// The plan of such a layout; stage s is of pool "p<s>".
model::ExecutionPlan PlanOf(const Layout& layout, const Graph& graph);

struct RunOutcome {
  std::vector<double> losses;  // mean loss of each step's batch
  double auc = 0;              // of the test data after the last step; 0 without test data
  double log_loss = 0;
  // The dense parameters of each device at the end, by name, device by device.
  std::vector<std::pair<std::string, std::vector<float>>> parameters;
};

// The spec of the Adult examples, with the data under examples/data.
model::JobSpec AdultJob();

// Trains at most `steps` steps (all epochs when 0) and evaluates on `test` if it is not null. Waits at most two
// minutes.
absl::StatusOr<RunOutcome> Train(const model::JobSpec& job, const Layout& layout, const Dataset& train,
                                 const Dataset* test, int64_t steps);

// The same for any plan. Of `options`, what does not make the plan: drains and agreements.
absl::StatusOr<RunOutcome> Train(const model::JobSpec& job, const model::ExecutionPlan& plan, const Layout& options,
                                 const Dataset& train, const Dataset* test, int64_t steps);

// The leases of a whole job, as the coordinator's ledger computes them.
std::vector<StepLease> Leases(const model::JobSpec& job, int64_t rows);

}  // namespace medley::worker::testing
