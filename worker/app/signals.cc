#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <string_view>
#include <thread>

#include "worker/app/roles.h"

namespace medley::worker {
namespace {

// A page of a mapped file cannot be read. The process cannot go on, but says why: afterwards the signal ends it, as if
// there was no handler. Calls only what a handler may call.
void SayBusError(int) {
  constexpr std::string_view kLine =
      R"({"level":"error","component":"medley-worker","msg":"a file that this process has mapped can no longer be read: )"
      R"(another process has cut it off, or its disk failed. The process ends; its successor makes a file of samples )"
      R"(again, and reads any other file again"})"
      "\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kLine.data(), kLine.size());
}

}  // namespace

struct Signals::State {
  std::stop_source source;
  std::jthread thread;
};

Signals::Signals() : state_(std::make_unique<State>()) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);  // a write to a broken connection then returns an error instead of ending the process
  struct sigaction bus = {};
  bus.sa_handler = SayBusError;
  bus.sa_flags = SA_RESETHAND;
  sigaction(SIGBUS, &bus, nullptr);
  state_->thread = std::jthread([this, set](std::stop_token stop) {
    const timespec slice{0, 100'000'000};
    while (!stop.stop_requested()) {
      if (sigtimedwait(&set, nullptr, &slice) > 0) state_->source.request_stop();
    }
  });
}

Signals::~Signals() = default;

std::stop_token Signals::stop() const { return state_->source.get_token(); }

}  // namespace medley::worker
