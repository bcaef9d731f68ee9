// The plan that a job runs or is switching to, with its pods. ConfigMap JOB-plan stores it, so that a restarted
// operator or another leader can continue from it. Immutable value; conversions are pure.
#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <memory>
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
  std::map<std::string, double> usd_per_unit_hour;  // pool -> the price that the plan was computed with
  std::vector<std::string> layer_names;
  // samples/s, what the profiles without corrections by measurements promise for the plan; 0: as plan.estimate.
  double uncorrected_throughput = 0;
  double throughput_spread = 0;          // relative standard deviation of plan.estimate.throughput; 0: not known
  std::vector<double> stage_throughput;  // samples/s, estimated for each stage
  std::vector<PlanStatus::Alternative> alternatives;  // the best plans that use one pool only
  Reason reason = Reason::kFirstPlan;                 // why this plan was made
  std::string accepted_at;                            // RFC 3339
  std::string policy;                                 // hash of the goals and limits that were last considered
  // The coordinator's pod and its container restarts when restarts were last counted.
  std::string coordinator_uid;
  int coordinator_restarts = 0;
  std::string coordinator_pod;   // its name; empty: CoordinatorName(job)
  int64_t coordinator_term = 0;  // 0: of a job that started under an operator that gave no terms
  // The pod that will take over from it; term 0: none.
  std::string successor_pod;
  int64_t successor_term = 0;
  // The plan that was in force when this one was accepted, to go back to if this one cannot run; null: none was. It has
  // no fallback of its own.
  std::shared_ptr<const PlanRecord> fallback;

  // The plan's cost per hour at `prices` (by pool); a pool without an entry counts with the price in the record.
  double UsdPerHour(const std::map<std::string, double>& prices) const;
  // The zone that the pods of each pool of the plan are pinned to; empty: none. All slots of a pool have the same.
  std::map<std::string, std::string> Zones() const;
  int Trainers() const;
  std::string CoordinatorPodName(const std::string& job) const;
  // Another plan for the same coordinator.
  void KeepCoordinatorOf(const PlanRecord& other);
  // The slots of the fallback; none without one.
  std::vector<MemberSlot> FallbackSlots() const;
};

kube::Object PlanConfigMap(const TrainingJob& job, const PlanRecord& record);
// Errors: InvalidArgument, naming the ConfigMap and the malformed part.
absl::StatusOr<PlanRecord> ReadPlanRecord(const kube::Object& config_map);

// True when the stages or placements, servers, schedule and order are equal, so that a switch would change nothing.
bool SameShape(const model::ExecutionPlan& a, const model::ExecutionPlan& b);

}  // namespace medley::ops
