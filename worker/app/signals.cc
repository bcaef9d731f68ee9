#include <pthread.h>
#include <signal.h>

#include <thread>

#include "worker/app/roles.h"

namespace medley::worker {

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
