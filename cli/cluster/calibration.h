// What a job measures, applied to the profiles of its planning request, so that a new plan and the running one are
// predicted by the same measure. Pure.
#pragma once

#include "cli/cluster/job_plan_request.h"

namespace medley::cli {

// Multiplies the seconds of all layers on all pools with (throughput that the uncorrected profiles predict for the
// running plan) / (its measured throughput), and adds a note that says so. Does nothing unless the job trains with the
// plan in force and measures it. A ratio outside [1/10, 10] is no calibration: the profiles stay, and a note says so.
void CalibrateByMeasurement(JobPlanRequest& job_request);

}  // namespace medley::cli
