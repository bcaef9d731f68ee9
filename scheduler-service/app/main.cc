// medley-scheduler: the scheduling service. Serves until SIGTERM or SIGINT and then exits with code 0. If an address is
// in use or an option is invalid, it prints an error and exits with code 1.
#include <malloc.h>

#include <csignal>
#include <cstdio>

#include "common/base/log.h"
#include "common/base/status.h"
#include "scheduler-service/app/options.h"
#include "scheduler-service/app/program.h"

namespace medley::sched {
namespace {

// Blocks SIGTERM and SIGINT. Every thread inherits the mask, so only sigwait receives these signals.
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
  // By default glibc gives every thread its own arena, and memory freed in one arena is not reused by the others.
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
