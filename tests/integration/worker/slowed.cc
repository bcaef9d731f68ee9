#include "tests/integration/worker/slowed.h"

#include <signal.h>

#include "common/base/clock.h"

namespace medley::worker {

Slowed::Slowed(JobHarness& job, const std::string& name)
    : thread_([&job, name](const std::stop_token& stop) {
        base::SystemClock clock;
        while (!stop.stop_requested()) {
          job.Signal(name, SIGSTOP);
          clock.SleepFor(base::milliseconds(45), stop);
          job.Signal(name, SIGCONT);
          clock.SleepFor(base::milliseconds(5), stop);
        }
      }) {}

}  // namespace medley::worker
