// Whether what runs reaches the goal of its job, as measured. A prediction that says otherwise is wrong. Pure.
#pragma once

#include "operator/api/training_job.h"
#include "operator/records/plan_record.h"

namespace medley::ops::lifecycle {

// For a job that trains.
struct Measured {
  double throughput = 0;         // samples/s; 0: not measured yet
  double usd_per_hour = 0;       // of the plan in force, at the prices of today
  double remaining_samples = 0;  // at least 0
  double elapsed_seconds = 0;
  double spent_usd = 0;
};

// False also before the throughput was measured.
bool ReachesGoal(const Objective& goal, const Measured& measured);

// True when the plan has as many units as the job asks for.
bool HasWantedUnits(const Elasticity& elasticity, const model::ExecutionPlan& plan);

}  // namespace medley::ops::lifecycle
