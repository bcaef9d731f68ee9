// Runs the program of a plan on one device: the steps that train, and the evaluation. Knows nothing of schedules.
//
// Prefetch() starts assembling a step's batch and pulling its rows in a background thread, at most
// Prefetcher::kMaxPrefetched steps ahead. The rows are those of the version that the step computes with, because a pull
// waits at their owner for its update. When the device reduces several blocks, other threads do it while the backward
// pass goes on: one for each replica that serves gradients, and one for all other reductions. One thread calls
// Prefetch, RunStep, Drain, Evaluate and DropPrefetched. A trainer owns one executor per generation; programs and
// `parts` must outlive it. The destructor stops and joins the threads.
//
// Several steps are open at once in an asynchronous program, and where reductions go on during the next step. A step
// computes with the parameters of `lag` steps before, but not with those before the last drain: max(drained, step -
// lag).
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "common/base/clock.h"
#include "common/program/program.h"
#include "worker/data/block_order.h"
#include "worker/data/dataset.h"
#include "worker/pipeline/block_compute.h"
#include "worker/pipeline/dense_reducer.h"
#include "worker/pipeline/flow_channel.h"
#include "worker/pipeline/sparse_parameters.h"
#include "worker/pipeline/step.h"
#include "worker/pipeline/wait_limit.h"
#include "worker/scores/scorer.h"

namespace medley::worker {

// The programs of one plan, for training and for evaluation. Their blocks are the same.
struct Programs {
  program::Program training;
  program::Program evaluation;
};

struct ExecutorParts {
  std::vector<BlockCompute*> blocks;  // by block of the program; null for those of other devices
  const Dataset* data = nullptr;
  FlowChannel* channel = nullptr;      // null when no flow begins or ends here
  SparseParameters* sparse = nullptr;  // null without tables
  DenseReducer* reducer = nullptr;     // null when nothing is reduced here
  base::Clock* clock = nullptr;
  BlockOrder blocks_of_data;   // in which the data are shuffled
  unsigned reads = kAllParts;  // the lists of samples (RowParts) that the blocks need
  int drawn = 0;               // BatchShare::drawn
};

// How to score test data.
struct EvaluationOptions {
  Scoring scoring;
  int chunk = 1024;                                    // samples scored at a time, over all replicas
  base::nanoseconds chunk_timeout{base::seconds(90)};  // for one chunk; the whole evaluation has no deadline
  std::stop_token stop;
  std::function<void()> on_chunk;  // called after each chunk
};

class Executor {
 public:
  // `seed`: of the order of the data. Errors: those of SequenceOf; InvalidArgument when the blocks have other values
  // than the program.
  static absl::StatusOr<std::unique_ptr<Executor>> Create(const Programs& programs, int device, ExecutorParts parts,
                                                          const Optimizer& optimizer, uint64_t seed);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Starts to prepare a step; does nothing when it is already prefetched or the queue is full. No drain may come
  // between this call and the step.
  void Prefetch(const StepLease& lease);
  // Begins a step, and goes on with the open ones as far as the program says. Returns the step that this completes:
  // this one when the program is synchronous; nullopt while the pipeline fills. Call in the order of steps. After an
  // error some blocks may have applied a step and others not: the device must be rolled back before another step runs.
  // Errors: those of the parts, Cancelled, DeadlineExceeded.
  absl::StatusOr<std::optional<StepResult>> RunStep(const StepLease& lease, const WaitLimit& limit);
  // Completes the next open step without beginning another; nullopt when none is open. Call it until then, at the same
  // step on all devices. Errors as RunStep.
  absl::StatusOr<std::optional<StepResult>> Drain(const WaitLimit& limit);
  // No step may be open. Scores `test` with the model of `step`, chunk by chunk, together with the other devices.
  // Returns the counts of this device's share; empty unless it has the loss. Errors: those of the parts, Cancelled,
  // DeadlineExceeded, FailedPrecondition (a step is open).
  absl::StatusOr<ScoreSums> Evaluate(const Dataset& test, int64_t step, const EvaluationOptions& options);
  // Seconds that the computation of a step of `count` samples takes (probe.h). Errors: FailedPrecondition (a step is
  // open), those of ProbePasses.
  absl::StatusOr<double> Probe(int count, base::nanoseconds pause);
  // Cancels and drops all prefetched and open steps (for a rollback or a switch of generation). Waits for their
  // reductions, which use the gradients: end these by their limit before.
  void DropPrefetched();

 private:
  class Rep;
  explicit Executor(std::unique_ptr<Rep> rep);
  const std::unique_ptr<Rep> rep_;
};

}  // namespace medley::worker
