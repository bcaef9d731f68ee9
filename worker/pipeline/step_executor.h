// Runs the steps of one stage replica: assembles the batch, pulls rows, runs the micro-batches, sums gradients,
// updates.
//
// Prefetch() starts assembling a step's batch and pulling its rows in a background thread, at most kMaxPrefetched steps
// ahead. Steps stay synchronous, because a pull for step s+1 waits at the owner of the rows for update s. One thread
// calls Prefetch, RunStep, Evaluate and DropPrefetched. A trainer owns one executor per generation; `parts` must
// outlive it. The destructor stops and joins the background thread.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <vector>

#include "common/base/clock.h"
#include "common/model/execution_plan.h"
#include "worker/data/dataset.h"
#include "worker/pipeline/activation_channel.h"
#include "worker/pipeline/dense_reducer.h"
#include "worker/pipeline/sparse_parameters.h"
#include "worker/pipeline/stage_compute.h"
#include "worker/pipeline/wait_limit.h"
#include "worker/scores/scorer.h"

namespace medley::worker {

// One global batch: samples [first, first + count) of the permutation of `data_epoch` (StepLease of
// proto/medley/job/v1/coordinator.proto).
struct StepLease {
  int64_t step = 0;
  int64_t data_epoch = 0;
  int64_t first = 0;
  int count = 0;
  bool operator==(const StepLease&) const = default;
};

// This replica's place in the plan.
struct StagePlace {
  int stage = 0;
  int replica = 0;
  std::vector<std::vector<double>> shares;  // of every replica of every stage (ReplicaShares)
  model::ScheduleKind schedule = model::ScheduleKind::kSync1F1B;
  int micro_batches = 1;
  uint64_t seed = 1;  // seed of the data's permutation
};

StagePlace PlaceOf(const model::ExecutionPlan& plan, int stage, int replica, uint64_t seed);

struct StepParts {
  StageCompute* compute = nullptr;
  const Dataset* data = nullptr;
  ActivationChannel* channel = nullptr;  // null for a single stage
  SparseParameters* sparse = nullptr;    // null when the stage has no tables
  DenseReducer* reducer = nullptr;       // null when the stage has one replica
  const base::Clock* clock = nullptr;
};

struct StepResult {
  int64_t step = 0;
  double loss_sum = 0;  // over this replica's samples; last stage only
  int64_t loss_samples = 0;
  double compute_seconds = 0;
  double comm_seconds = 0;  // waiting for activations, gradients, rows, reduction
};

// How to score test data.
struct EvaluationOptions {
  Scoring scoring;
  int chunk = 1024;                                    // samples scored at a time, over all replicas
  base::nanoseconds chunk_timeout{base::seconds(90)};  // for one chunk; the whole evaluation has no deadline
  std::stop_token stop;
  std::function<void()> on_chunk;  // called after each chunk
};

class StepExecutor {
 public:
  static constexpr int kMaxPrefetched = 2;

  StepExecutor(StagePlace place, StepParts parts, Optimizer optimizer);
  ~StepExecutor();
  StepExecutor(const StepExecutor&) = delete;
  StepExecutor& operator=(const StepExecutor&) = delete;

  // Starts to prepare a step; does nothing when it is already prefetched or kMaxPrefetched other steps are.
  void Prefetch(const StepLease& lease);
  // Call in the order of steps. After an error the dense parameters are still at the step before, and the replica must
  // be rolled back before another step runs. Errors: those of the parts, Cancelled, DeadlineExceeded.
  absl::StatusOr<StepResult> RunStep(const StepLease& lease, const WaitLimit& limit);
  // Scores `test` with the model of `step`, chunk by chunk, together with the other stages. Returns the counts of this
  // replica's share; empty unless it is of the last stage. Errors: those of the parts, Cancelled, DeadlineExceeded.
  absl::StatusOr<ScoreSums> Evaluate(const Dataset& test, int64_t step, const EvaluationOptions& options);
  // Cancels and drops all prefetched steps (for a rollback or a switch of generation).
  void DropPrefetched();

 private:
  class Rep;
  std::unique_ptr<Rep> rep_;
};

}  // namespace medley::worker
