// Runs the steps of one stage replica: batch assembly, rows, micro-batches, reduction, update.
//
// Prefetch() starts the assembly of a step's batch and the pull of its rows in a background thread
// (at most kMaxPrefetched ahead); the rows of step s+1 wait at their owner for update s, so the
// synchronous semantics hold. One thread calls Prefetch, RunStep, Evaluate and DropPrefetched.
// Owned by the trainer, one a generation; the parts handed in outlive it. The destructor stops and
// joins the background thread.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "common/base/clock.h"
#include "common/model/execution_plan.h"
#include "worker/data/dataset.h"
#include "worker/pipeline/activation_channel.h"
#include "worker/pipeline/dense_reducer.h"
#include "worker/pipeline/sparse_parameters.h"
#include "worker/pipeline/stage_compute.h"
#include "worker/pipeline/wait_limit.h"

namespace medley::worker {

// One global batch: samples [first, first + count) of the permutation of `data_epoch` (job/v1
// StepLease).
struct StepLease {
  int64_t step = 0;
  int64_t data_epoch = 0;
  int64_t first = 0;
  int count = 0;
  bool operator==(const StepLease&) const = default;
};

// Where this replica stands in the plan.
struct StagePlace {
  int stage = 0;
  int replica = 0;
  std::vector<std::vector<double>> shares;  // of every replica of every stage (ReplicaShares)
  model::ScheduleKind schedule = model::ScheduleKind::kSync1F1B;
  int micro_batches = 1;
  uint64_t seed = 1;  // of the data's permutation
};

StagePlace PlaceOf(const model::ExecutionPlan& plan, int stage, int replica, uint64_t seed);

struct StepParts {
  StageCompute* compute = nullptr;
  const Dataset* data = nullptr;
  ActivationChannel* channel = nullptr;  // null for a single stage
  SparseParameters* sparse = nullptr;    // null when the stage has no tables
  DenseReducer* reducer = nullptr;       // null for one replica
  const base::Clock* clock = nullptr;
};

struct StepResult {
  int64_t step = 0;
  double loss_sum = 0;  // last stage: over this replica's samples
  int64_t loss_samples = 0;
  double compute_seconds = 0;
  double comm_seconds = 0;  // waiting for activations, gradients, rows, reduction
};

struct EvaluationResult {
  int64_t samples = 0;  // of this replica; last stage only
  double log_loss_sum = 0;
  std::vector<int64_t> positives;  // per score bucket, equal width over [0, 1]
  std::vector<int64_t> negatives;
};

class StepExecutor {
 public:
  static constexpr int kMaxPrefetched = 2;

  StepExecutor(StagePlace place, StepParts parts, Optimizer optimizer);
  ~StepExecutor();
  StepExecutor(const StepExecutor&) = delete;
  StepExecutor& operator=(const StepExecutor&) = delete;

  // A hint: does nothing for a step that is prefetched already or when kMaxPrefetched are.
  void Prefetch(const StepLease& lease);
  // Steps come in order. On error the parameters stand at the old step and the executor must not
  // run another step before the replica was rolled back. Errors: what the parts answer, Cancelled,
  // DeadlineExceeded.
  absl::StatusOr<StepResult> RunStep(const StepLease& lease, const WaitLimit& limit);
  // Runs `test` through the model as of `step` in chunks of `chunk` samples, together with the
  // other stages.
  absl::StatusOr<EvaluationResult> Evaluate(const Dataset& test, int64_t step, int chunk, const WaitLimit& limit);
  // Cancels and forgets what Prefetch started (rollback, generation switch).
  void DropPrefetched();

 private:
  class Rep;
  std::unique_ptr<Rep> rep_;
};

}  // namespace medley::worker
