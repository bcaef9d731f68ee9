// The stored plan (ConfigMap JOB-plan), which every editor of the job's namespace can change: whether the operator
// believes it, and that it stays as the operator has written it.
//
// A plan that is read back must have the operator's signature (records/record_keys.h) and be whole, like one that comes
// from the planner. Otherwise it is reported by an Event and the condition RecordsGenuine and made anew: written again
// from memory where this process knows the plan, else planned again.
#pragma once

#include <absl/status/status.h>

#include <optional>
#include <string>
#include <vector>

#include "operator/api/training_job.h"
#include "operator/lifecycle/keeping.h"
#include "operator/records/plan_record.h"

namespace medley::ops::lifecycle {

class Pass;

struct StoredPlanState {
  static constexpr char kOwner[] = "stored_plan";
  // The plan that the job runs or moves to; absent: none, or not read yet. Newer than the cache of ConfigMaps.
  std::optional<PlanRecord> record;
  std::string version;     // resourceVersion of the ConfigMap that holds it; empty: none is known
  KeptObject kept;         // that ConfigMap
  bool must_sign = false;  // it is signed by an earlier key
};

// Stores the plan if the stored one is still that which this process has read or written, so that no plan of an earlier
// or later leader is lost. If another operator has stored a plan meanwhile, returns an error and puts that plan into
// the memory.
absl::Status StorePlan(Pass& pass, const TrainingJob& job, const PlanRecord& record);
// Stores the UID of the coordinator's pod and its restarts, from which further restarts are counted.
absl::Status StoreCoordinator(Pass& pass, const TrainingJob& job, const std::string& uid, int restarts);
absl::Status DeletePlan(Pass& pass);

// Reads the stored plan unless the memory has it. A plan that is not believed does not count.
absl::Status ReadStoredPlan(Pass& pass);
// Writes the plan of the memory again when the cache shows that another client has changed or deleted it.
absl::Status KeepStoredPlan(Pass& pass, const TrainingJob& job);

// OK: the plan is valid, belongs to the job with this name and UID, and its slots are those of the plan, with names
// that only pods of the job have. Errors: InvalidArgument. Pure.
absl::Status CheckPlanRecord(const PlanRecord& record, const std::string& job, const std::string& uid);

// Sets the condition RecordsGenuine to False and publishes an Event. `why`: a clause.
void ReportRefusedRecord(Pass& pass, const std::string& why);
// The plan has been stored: a condition that is False becomes True.
void ReportRenewedRecord(Pass& pass);

// The job's trainers and servers that exist, as slots without indices: so that a job whose plan was refused can use
// them under its next plan. Empty while the job has a plan.
std::vector<MemberSlot> MembersWithoutPlan(const Pass& pass);

}  // namespace medley::ops::lifecycle
