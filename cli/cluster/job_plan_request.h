// The planning request of a job in a cluster, built from the cluster's objects with the operator's own code
// (operator/records/plan_request.h). Pure except for ReadJobObjects, which reads from the cluster.
//
// It differs from the operator's request: units are the pools' status.units.free plus those that the job holds, so the
// namespace's ResourceQuotas do not limit them; prices come from the pools' status, or from the running plan for a pool
// that the job holds in another zone than the cheapest; profiles are those measured, without the scheduling service's
// corrections. calibration.h corrects them by what the job measures itself.
#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/cluster/connection.h"
#include "common/base/clock.h"
#include "common/model/planning.h"
#include "operator/api/job_status.h"
#include "operator/records/plan_record.h"

namespace medley::cli {

// The objects from which the request is built.
struct JobObjects {
  kube::Object job;
  std::vector<kube::Object> pools;
  std::vector<kube::Object> pods;                // the job's pods
  std::map<std::string, kube::Object> profiles;  // ConfigMaps by pool
  std::optional<kube::Object> plan;              // ConfigMap JOB-plan
};

struct JobPlanRequest {
  model::PlanRequest request;  // with prices
  int64_t catalog_revision = 0;
  std::string price_time;
  ops::JobStatus status;                  // the job's status
  std::optional<ops::PlanRecord> record;  // record of the plan in force
  std::vector<std::string> notes;         // sentences about pools that were left out, and other restrictions
  double calibration = 1;                 // measured / predicted throughput that predictions are multiplied by
};

// With `keep_offerings`, pools priced by an offering stay without a price, which a price file then supplies. Errors are
// sentences for users: InvalidArgument (spec), NotFound (a pool that the job names), FailedPrecondition (no pool has
// both a profile and a price).
absl::StatusOr<JobPlanRequest> BuildJobPlanRequest(const JobObjects& objects, bool keep_offerings, base::WallTime now);

// Errors: those of connection.h.
absl::StatusOr<JobObjects> ReadJobObjects(const Cluster& cluster, const std::string& job);

}  // namespace medley::cli
