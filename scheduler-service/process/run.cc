#include "scheduler-service/process/run.h"

#include <malloc.h>

#include <csignal>
#include <cstdio>

#include "common/base/status.h"

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

}  // namespace

int RunUntilSignal(const char* program, const std::function<absl::Status(const std::function<void()>&)>& serve) {
  // By default glibc gives every thread its own arena, and memory freed in one arena is not reused by the others.
  mallopt(M_ARENA_MAX, 4);
  const sigset_t signals = BlockSignals();
  const absl::Status status = serve([&] {
    int signal = 0;
    sigwait(&signals, &signal);
  });
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s: %s\n", program, base::Message(status).c_str());
  return 1;
}

}  // namespace medley::sched
