// What the page of a job shows, as JSON. Pure.
#pragma once

#include <string>

#include "cli/cluster/story.h"
#include "common/base/clock.h"

namespace medley::cli {

// {"namespace", "name", "uid", "status": the job's status, "layerNames": [...], "usdPerUnitHour": {pool: price},
//  "events": [{"at", "count", "type", "reason", "object", "message"}] newest first, "explain": lines of medley explain}
std::string JobJson(const Story& story, base::WallTime now);

}  // namespace medley::cli
