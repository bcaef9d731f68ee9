// Builds a plan request from a job, its profile and the pools that it may use. Pure.
#pragma once

#include <absl/status/statusor.h>

#include <vector>

#include "common/model/forward.h"
#include "operator/api/resource_pool.h"
#include "operator/api/training_job.h"

namespace medley::ops {

// A pool, and how many of its units this job may hold: the free ones and those that it holds already.
struct PoolOffer {
  const ResourcePool* pool = nullptr;
  int units = 0;
  std::string bound;  // what limits them, in words
  // For a unit, where the price comes from a catalog; 0: the price in the pool's spec counts.
  double usd_per_unit_hour = 0;
  std::string zone;  // of that price; empty: as the pool's offering says
};

// What the job has done and spent so far.
struct JobProgress {
  double remaining_samples = 0;  // 0: all of them
  double elapsed_seconds = 0;
  double spent_usd = 0;
  // Measured throughput over estimated throughput of the present plan; the profile's times are divided by it. 1: use
  // the profile unchanged.
  double calibration = 1;
};

// Divides the times of all layers on all pools by `calibration`, of which what is outside [1/20, 20] is cut off.
void Calibrate(model::Model& model, double calibration);

// `offers`: at least one. The request's deadline and budget are what is left of the job's. When nothing is left, the
// request asks for a tiny amount, so that the response explains why the goal cannot be met.
//
// With Objective::fastest the request's cluster has a device for each unit, each on a machine of its own, in the zone
// of its offer: at most elasticity.max_units and model::kMaxClusterDevices, those that compute the model fastest; with
// a bound of money as many of each pool. A model with tables on parameter servers, and a job that leaves out slow
// trainers, need plans of stages, so their requests have no cluster. Links are those of the profile; between pools that
// were not measured together, the slower one; where a pool has none, model::kUnmeasuredLink.
//
// Rows of tables may be on parameter servers or in trainers, whichever is better. A job that names a pool for its
// parameter servers gets servers there.
model::PlanRequest BuildPlanRequest(const TrainingJob& job, const model::Profile& profile,
                                    const std::vector<PoolOffer>& offers, const JobProgress& progress);

// The plan and the price of an answer to the goal "step time" in the form of an answer to the goal cost: all trainers
// that the plan names, at the prices of `result.resources`, for what is left of the training. Other answers, and those
// without a plan, stay as they are.
model::PlanResult WithPrice(model::PlanResult result, const model::PlanRequest& request);

// The pool for parameter servers: the one that the job names, else the cheapest CPU pool with units (pools whose price
// is known first); empty: none of `offers`.
std::string ServerPool(const TrainingJob& job, const std::vector<PoolOffer>& offers);

// Merges the profiles of several pools into one: the layers of the first with the numbers of all. Errors:
// InvalidArgument when the profiles are of different models.
absl::StatusOr<model::Profile> MergeProfiles(const std::vector<model::Profile>& profiles);

// The names of the layers, for the description of plans.
std::vector<std::string> LayerNames(const model::Model& model);

}  // namespace medley::ops
