// A whole job in one process: stages and replicas as threads over an in-memory fabric.
#pragma once

#include <absl/status/statusor.h>

#include <vector>

#include "common/model/job_spec.h"
#include "worker/data/dataset.h"
#include "worker/pipeline/step_executor.h"

namespace medley::worker::testing {

// Which operations each stage has, and the shares of its replicas.
struct Layout {
  std::vector<model::OperationRange> stages;
  std::vector<std::vector<double>> shares;
  int micro_batches = 1;
  model::ScheduleKind schedule = model::ScheduleKind::kSync1F1B;
};

struct RunOutcome {
  std::vector<double> losses;  // mean of each step's batch
  double auc = 0;              // of the test data after the last step; 0 without any
  double log_loss = 0;
};

// spec.yaml of the Adult examples, with the data under examples/data.
model::JobSpec AdultJob();

// Trains at most `steps` steps (all epochs when 0) and evaluates on `test` when given. Waits at
// most two minutes.
absl::StatusOr<RunOutcome> Train(const model::JobSpec& job, const Layout& layout, const Dataset& train,
                                 const Dataset* test, int64_t steps);

// The leases of a whole job, as the coordinator's ledger gives them.
std::vector<StepLease> Leases(const model::JobSpec& job, int64_t rows);

}  // namespace medley::worker::testing
