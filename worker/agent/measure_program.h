// The profile of a program on one pool: the program itself runs on one unit for some steps (docs/adr/0086).
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
  std::vector<std::string> environment;  // of this process
  double cores = 0;                      // of the unit; 0: unknown
  double cpu_period_seconds = 0;
  base::Clock* clock = nullptr;
  std::stop_token stop;
};

// A model of one layer, whose seconds are those of a step on one unit. Errors: those of ProgramRun, Cancelled.
absl::StatusOr<model::Profile> MeasureProgram(MeasureOptions options);

}  // namespace medley::worker
