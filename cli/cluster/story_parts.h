// Sections of a job's story. Pure.
#pragma once

#include <string>
#include <vector>

#include "cli/cluster/story.h"
#include "common/base/clock.h"
#include "operator/api/job_status.h"

namespace medley::cli {

// The conditions that explain why the job does not train or is changing, the most severe first. Empty when it simply
// trains.
std::vector<const ops::Condition*> NotableConditions(const ops::JobStatus& status);

// Why a pod does not run, to follow its name in a sentence; "" when it runs.
std::string PodProblem(const kube::Object& pod);

// Sentences about pools of the plan in force that were deleted or are being deleted. The operator may not have noticed
// yet.
std::vector<std::string> DeletedPools(const Story& story, const ops::JobStatus& status);

// Sentences about pods that do not run.
std::vector<std::string> PodProblems(const Story& story);

// A table of the goals of spec.objective with their current values.
std::vector<std::string> Goals(const Story& story, const ops::JobStatus& status, base::WallTime now);

// The plan in force as a table, with the reason for it and its distance from the lower bound of the cost.
std::vector<std::string> Plan(const Story& story, const ops::JobStatus& status, base::WallTime now);

// The best plans on a single pool, and how much more they would cost.
std::vector<std::string> Alternatives(const ops::JobStatus& status);

// Predicted and measured throughput and cost.
std::vector<std::string> Prediction(const Story& story, const ops::JobStatus& status);

}  // namespace medley::cli
