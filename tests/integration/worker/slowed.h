// Holds a job back, so that it does not end before what a test waits for.
#pragma once

#include <string>
#include <thread>

#include "tests/integration/worker/job_harness.h"

namespace medley::worker {

// While it lives, a process of the job runs for a tenth of the time, as on a machine that other work has taken. The job
// outlives it.
class Slowed {
 public:
  Slowed(JobHarness& job, const std::string& name);

 private:
  std::jthread thread_;
};

}  // namespace medley::worker
