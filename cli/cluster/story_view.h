// `medley explain JOB`: formats a job's story: problems and advice, goals, the plan, its alternatives and cost, the
// quality of the prediction, switches and events. Pure.
#pragma once

#include <string>
#include <vector>

#include "cli/cluster/story.h"
#include "common/base/clock.h"

namespace medley::cli {

// Returns sections with headings; omits empty sections.
std::vector<std::string> StoryLines(const Story& story, base::WallTime now);

// The exit status of `medley explain JOB`: 2 when the job has no feasible plan, 3 when it has failed, else 0.
int StoryExitStatus(const Story& story);

}  // namespace medley::cli
