#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <stop_token>
#include <string_view>
#include <thread>

#include "common/base/status.h"
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
  ~State() {
    thread = {};  // joins
    close(signals);
    close(end);
  }
  std::stop_source source;
  int signals = -1;
  int end = -1;  // readable when the thread is to end
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
  state_->signals = signalfd(-1, &set, SFD_CLOEXEC);
  state_->end = eventfd(0, EFD_CLOEXEC);
  MEDLEY_CHECK(state_->signals >= 0 && state_->end >= 0, "this process needs two files at its start");
  state_->thread = std::jthread([state = state_.get()](const std::stop_token& stop) {
    const std::stop_callback wake(stop, [state] { eventfd_write(state->end, 1); });
    pollfd files[] = {{state->signals, POLLIN, 0}, {state->end, POLLIN, 0}};
    while (!stop.stop_requested()) {
      signalfd_siginfo signal{};
      const bool came = poll(files, 2, -1) > 0 && (files[0].revents & POLLIN) != 0;
      if (came && read(state->signals, &signal, sizeof(signal)) > 0) state->source.request_stop();
    }
  });
}

Signals::~Signals() = default;

std::stop_token Signals::stop() const { return state_->source.get_token(); }

}  // namespace medley::worker
