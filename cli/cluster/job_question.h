// The planning question of a job in a cluster, built from what the cluster shows of it by the
// operator's own code (operator/records/plan_request.h). Pure but for ReadJobQuestion, which reads.
//
// Differences from what the operator asks: units are the pools' status.units.free plus what the job
// holds, so ResourceQuotas of the namespace do not bound them; prices are those of the pools'
// status; profiles are as measured, without the scheduling service's corrections.
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

// What is read of a cluster for it.
struct JobObjects {
  kube::Object job;
  std::vector<kube::Object> pools;
  std::vector<kube::Object> pods;                // of the job
  std::map<std::string, kube::Object> profiles;  // ConfigMaps by pool
  std::optional<kube::Object> plan;              // ConfigMap JOB-plan
};

struct JobQuestion {
  model::PlanRequest request;  // with prices
  int64_t catalog_revision = 0;
  std::string price_time;
  ops::JobStatus status;                  // of the job
  std::optional<ops::PlanRecord> record;  // of the running plan
  std::vector<std::string> notes;         // what was left out, and why
};

// `keep_offerings`: pools priced by an offering stay without a price, for a price file to fill in.
// Errors: InvalidArgument (spec), NotFound (a pool that the job names), FailedPrecondition (no pool
// with profile and price), all in words.
absl::StatusOr<JobQuestion> AskOf(const JobObjects& objects, bool keep_offerings, base::WallTime now);

// Errors: as connection.h.
absl::StatusOr<JobObjects> ReadJobObjects(const Cluster& cluster, const std::string& job);

}  // namespace medley::cli
