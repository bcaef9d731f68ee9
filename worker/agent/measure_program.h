// The profile of a program on one pool: the program itself runs on one unit for some steps, and then as the processes
// of several units on this one (docs/adr/0107-a-profiler-runs-the-processes-of-several-units-on-one.md).
#pragma once

#include <absl/status/statusor.h>

#include <stop_token>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/model/job_spec.h"
#include "common/model/profile.h"

namespace medley::worker {

struct MeasureOptions {
  model::ProgramSpec program;
  // Arguments below this folder are below `scratch` instead, so that the program neither continues nor replaces what
  // the job has saved. Empty: the job has none.
  std::string checkpoint_folder;
  std::string scratch;
  std::string profile_id;
  std::string pool;
  int processes = 1;
  std::vector<int> sizes;  // numbers of units, above 1, that are measured besides one, in this order
  base::nanoseconds sizes_time = base::seconds(80);  // one that would make `sizes` take longer than this is left out
  int64_t memory_bytes = 0;              // of the unit; 0: unknown. A size whose processes need more is left out
  std::vector<std::string> environment;  // of this process
  double cores = 0;                      // of the unit; 0: unknown
  double cpu_period_seconds = 0;
  base::Clock* clock = nullptr;
  std::stop_token stop;
};

// A model of one layer, whose seconds are those of a step on one unit, and how they change with the number of units
// (model::ScalingCurve), as far as it was measured. A size that fails is left out. Errors: those of ProgramRun for one
// unit, Cancelled.
absl::StatusOr<model::Profile> MeasureProgram(MeasureOptions options);

// A run for the time of a step.
struct TimedRun {
  double seconds = 0;            // of a step
  double spread = 0;             // relative standard error of `seconds`
  double processor_seconds = 0;  // that a step takes of all processes together; 0: unknown
  double cores = 0;              // that the processes used on average
  double waited = 0;             // processors for which they waited on average
};

// The time of a step on `units` units of `cores` each, where `many` is a run of as many processes on one of them. Where
// that unit had processor time left, and other work on the machine did not take it, it is the time of that run. Else
// its processes have waited for the processor, which those of one unit never share: then the step takes as much longer
// or shorter than `one`'s as each unit has more or less to compute. 0: unknown. Pure.
double SecondsOnUnits(const TimedRun& one, const TimedRun& many, int units, double cores);

}  // namespace medley::worker
