// medley-scheduler: the scheduling service. Starts, serves until SIGTERM or SIGINT, leaves with 0; with 1 and a
// sentence when an address is in use or an option is wrong.
#include <malloc.h>

#include <csignal>
#include <cstdio>

#include "common/base/log.h"
#include "common/base/status.h"
#include "scheduler-service/app/options.h"
#include "scheduler-service/app/program.h"

namespace medley::sched {
namespace {

// Every thread inherits the mask, so that a signal to end reaches sigwait only.
sigset_t BlockSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  return set;
}

int Main(int argc, char** argv) {
  Options options;
  if (const auto code = ParseOptions(argc, argv, options)) return *code;
  // By default every thread gets an arena of its own, and memory that one frees is not used by another.
  mallopt(M_ARENA_MAX, 4);
  log::Configure("scheduler", log::ParseLevel(options.log_level));
  const sigset_t signals = BlockSignals();
  const absl::Status status = Serve(options, [&] {
    int signal = 0;
    sigwait(&signals, &signal);
  });
  if (status.ok()) return 0;
  std::fprintf(stderr, "medley-scheduler: %s\n", base::Message(status).c_str());
  return 1;
}

}  // namespace
}  // namespace medley::sched

int main(int argc, char** argv) { return medley::sched::Main(argc, argv); }
