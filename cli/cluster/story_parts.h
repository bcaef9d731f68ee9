// Sections of a job's story. Pure; internal to cli/cluster.
#pragma once

#include <string>
#include <vector>

#include "cli/cluster/story.h"
#include "common/base/clock.h"
#include "operator/api/job_status.h"

namespace medley::cli {

// Conditions that say why it does not train or what it is busy with, the worst first; empty when
// all is well.
std::vector<const ops::Condition*> InTheWay(const ops::JobStatus& status);

// Pods that do not run, and why.
std::vector<std::string> PodTroubles(const Story& story);

// Each goal of spec.objective against what is.
std::vector<std::string> Goals(const Story& story, const ops::JobStatus& status, base::WallTime now);

// The plan in force as a table, why it was made, and how near to the cheapest it is.
std::vector<std::string> Plan(const Story& story, const ops::JobStatus& status, base::WallTime now);

// The best plans on one pool alone, and what they would cost more.
std::vector<std::string> Alternatives(const ops::JobStatus& status);

std::vector<std::string> Prediction(const Story& story, const ops::JobStatus& status);

}  // namespace medley::cli
