// Units of a job in the terms of operator/capacity.
#pragma once

#include <absl/status/status.h>

#include <stop_token>
#include <string>
#include <vector>

#include "operator/capacity/unit_losses.h"
#include "operator/controllers/job_deps.h"
#include "operator/records/member_slot.h"

namespace medley::ops {

// The units of a plan, and of the plan in force that it replaces, and the room for the coordinator. A slot whose pool
// does not exist has none; no slots have none at all. `coordinator_pod`: its name; empty: that of a job's first.
std::vector<PlannedUnit> UnitsOfSlots(const JobDeps& deps, const TrainingJob& job, const std::vector<MemberSlot>& slots,
                                      const std::vector<MemberSlot>& until_switch, const std::string& coordinator_pod);

// A TrainingJob that exists controls the pod. Where this operator runs the jobs of one namespace only, those of others
// are not known, and the kind of the controller is enough.
bool IsOfKnownJob(const JobDeps& deps, const kube::Object& pod);

// The pods of the pool that have a node, profilers included.
PoolOutages::Placed PlacedPods(const JobDeps& deps, const std::string& pool);
// The pods of jobs that have nodes of the pool, and those whose nodes were taken from them.
std::vector<UnitLosses::Unit> UnitsWithNodes(const JobDeps& deps, const std::string& pool);

WaitingLine::Job PlaceInLine(const JobDeps& deps, const TrainingJob& job, const kube::Object& object);

// Wakes the jobs that wait for units, if something may have become free.
void ReportFreed(const JobDeps& deps);

// For a process that has just begun to lead, before it plans any job: reserves the units of all stored plans of the
// namespace (empty: of all), and puts the jobs that were planned in vain into the line. Reads jobs and plans from the
// API server, because the caches may lack what the last leader has written. Tries again for a minute. Errors: those of
// the API server; Cancelled.
absl::Status RestoreUnits(const JobDeps& deps, const std::string& ns, std::stop_token stop);

}  // namespace medley::ops
