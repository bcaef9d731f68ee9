// A planning question from a job, its profile and the pools that it may use. Pure.
#pragma once

#include <absl/status/statusor.h>

#include <vector>

#include "common/model/planning.h"
#include "operator/api/resource_pool.h"
#include "operator/api/training_job.h"

namespace medley::ops {

// A pool, and how many units of it this job may hold (what is free, and what it holds already).
struct PoolOffer {
  const ResourcePool* pool = nullptr;
  int units = 0;
  std::string bound;  // what bounds them, in words
  // Of a unit, where the price comes from a catalog; 0: what the pool's spec says.
  double usd_per_unit_hour = 0;
  std::string zone;  // of that price; empty: as the pool's offering says
};

// How far the job is.
struct JobProgress {
  double remaining_samples = 0;  // 0: all of them
  double elapsed_seconds = 0;
  double spent_usd = 0;
  // Measured over estimated throughput of the present plan; the profile's times are divided by it.
  // 1: as measured alone.
  double calibration = 1;
};

// `offers`: at least one. Deadline and budget shrink by what is used up; a goal that has passed
// stays as a tiny one, so that the answer says why it cannot be met.
model::PlanRequest BuildPlanRequest(const TrainingJob& job, const model::Profile& profile,
                                    const std::vector<PoolOffer>& offers, const JobProgress& progress);

// One profile out of one for each pool: layers of the first, with the numbers of all. Errors:
// InvalidArgument when they are not of the same model.
absl::StatusOr<model::Profile> MergeProfiles(const std::vector<model::Profile>& profiles);

// Names of the layers, for plans in words.
std::vector<std::string> LayerNames(const model::Model& model);

}  // namespace medley::ops
