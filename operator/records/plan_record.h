// The plan that a job runs or moves to, with the pods that carry it: kept in ConfigMap JOB-plan, so
// that an operator that starts anew, or another leader, goes on where this one stopped. Immutable
// value; conversions are pure.
#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <string>
#include <vector>

#include "common/model/execution_plan.h"
#include "kube/object.h"
#include "operator/api/job_status.h"
#include "operator/api/training_job.h"
#include "operator/records/member_slot.h"

namespace medley::ops {

struct PlanRecord {
  model::ExecutionPlan plan;  // with job_uid and generation
  std::vector<MemberSlot> slots;
  std::map<std::string, double> usd_per_unit_hour;  // by pool, as planned with
  std::vector<std::string> layer_names;
  std::vector<double> stage_throughput;               // samples/s expected of each stage
  std::vector<PlanStatus::Alternative> alternatives;  // the best plans on one pool alone
  std::string reason;                                 // why this plan was made: FirstPlan, PriceChanged, ...
  std::string accepted_at;                            // RFC 3339
  int64_t spec_generation = 0;                        // of the job for which it was made
  // The coordinator process that was last counted, for restarts.
  std::string coordinator_uid;
  int coordinator_restarts = 0;

  // At today's `prices`; a pool without a price counts as planned.
  double UsdPerHour(const std::map<std::string, double>& prices) const;
  // The zone that the pods of each pool of the plan are pinned to; empty: none. All slots of a pool have the same.
  std::map<std::string, std::string> Zones() const;
  int Trainers() const;
};

kube::Object PlanConfigMap(const TrainingJob& job, const PlanRecord& record);
absl::StatusOr<PlanRecord> ReadPlanRecord(const kube::Object& config_map);

// The same stages, groups, servers and schedule: a move between the two would change nothing.
bool SameShape(const model::ExecutionPlan& a, const model::ExecutionPlan& b);

}  // namespace medley::ops
