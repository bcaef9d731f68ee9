// The stored plan (ConfigMap JOB-plan), which every editor of the job's namespace can change: whether the operator
// believes it, and that it stays as the operator has written it.
//
// A plan that is read back must have the operator's signature (records/record_keys.h) and be whole, like one that comes
// from the planner. Otherwise it is reported by an Event and the condition RecordsGenuine and made anew: written again
// from memory where this process knows the plan, else planned again.
#pragma once

#include <absl/status/status.h>

#include <string>

#include "operator/api/training_job.h"
#include "operator/records/plan_record.h"

namespace medley::ops::lifecycle {

class Pass;

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
