// Plans for the goal "seconds of a step" from measured profiles, and their steps on real processes, for benches.
// Not thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <vector>

#include "common/model/forward.h"
#include "tests/integration/worker/job_harness.h"

namespace medley::bench {

struct PoolUnits {
  std::string pool;
  int units = 1;
};

struct StepTimeQuestion {
  std::string planner;  // NAME, or NAME/async for the asynchronous schedule
  int batch = 0;        // samples of a step
  int micro_batches = 1;
  std::vector<PoolUnits> pools;
};

// The question of the operator for a job with spec.objective.fastest. Errors: those of TrainingJob::FromObject.
absl::StatusOr<model::PlanRequest> AskAsOperator(const model::Profile& profile, const StepTimeQuestion& question);

// The plan of the request's planner, which the program medley-planner in the bench's folder is asked for where the
// planner is not one of the scheduling service. Errors: those of sched::MakePlan and of
// cli::AnswerOfPlannerProgram; FailedPrecondition without a plan.
absl::StatusOr<model::ExecutionPlan> PlanSteps(const model::PlanRequest& request);

// For each placement its operations and replicas: " 0-3 device*share ...;".
std::string PlacementsText(const model::ExecutionPlan& plan);
worker::JobShape ShapeOf(const model::ExecutionPlan& plan);

// Runs a profiler of the job in each pool. Errors: those of the profilers and of their output.
absl::StatusOr<model::Profile> MeasureProfiles(worker::JobHarness& job, const std::vector<std::string>& pools);

// Starts the coordinator and the members of the shape. Mean seconds of `steps` steps after the first `warm_up`. Waits
// `patience` for each step, and 60 s more. Errors: FailedPrecondition, with the logs.
absl::StatusOr<double> MeasureSteps(worker::JobHarness& job, const worker::JobShape& shape, int warm_up, int steps,
                                    base::seconds patience);

}  // namespace medley::bench
