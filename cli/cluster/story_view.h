// `medley explain JOB`: why this plan, what it costs and saves, how good the prediction was, why
// the job moved, why it waits or failed and what would have to change. Pure.
#pragma once

#include <string>
#include <vector>

#include "cli/cluster/story.h"
#include "common/base/clock.h"

namespace medley::cli {

// Sections with a heading each; a section without anything to say is left out.
std::vector<std::string> StoryLines(const Story& story, base::WallTime now);

// Exit status of `medley explain JOB`: 0, 2 when there is no plan for it, 3 when it has failed.
int StoryExitStatus(const Story& story);

}  // namespace medley::cli
