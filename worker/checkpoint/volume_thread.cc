#include "worker/checkpoint/volume_thread.h"

#include <deque>
#include <optional>
#include <utility>

#include "common/base/mutex.h"
#include "common/base/status.h"

namespace medley::worker {

using base::MutexLock;

// Shared with the thread, which may outlive the VolumeThread.
struct VolumeThread::State {
  explicit State(Options o) : options(o) {}

  const Options options;
  base::Mutex mutex;
  base::CondVar changed;
  std::deque<std::function<Deliver()>> queue ABSL_GUARDED_BY(mutex);
  bool stopping ABSL_GUARDED_BY(mutex) = false;
  bool ended ABSL_GUARDED_BY(mutex) = false;
  base::Mutex delivering;  // held during a Deliver, so that Stop does not return before its end
  bool abandoned ABSL_GUARDED_BY(delivering) = false;
};

VolumeThread::VolumeThread(Options options)
    : state_(std::make_shared<State>(options)), thread_([state = state_] { Loop(state); }) {}

VolumeThread::~VolumeThread() { Stop(); }

void VolumeThread::Loop(const std::shared_ptr<State>& state) {
  while (true) {
    std::function<Deliver()> work;
    {
      MutexLock lock(state->mutex);
      state->changed.Wait(state->mutex, {},
                          [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return state->stopping || !state->queue.empty(); });
      if (state->queue.empty()) {
        state->ended = true;
        state->changed.NotifyAll();
        return;
      }
      work = std::move(state->queue.front());
      state->queue.pop_front();
    }
    const Deliver deliver = work();
    MutexLock lock(state->delivering);
    if (state->abandoned) return;
    if (deliver) deliver();
  }
}

bool VolumeThread::Post(std::function<Deliver()> work) {
  MutexLock lock(state_->mutex);
  if (state_->stopping || state_->queue.size() >= state_->options.max_queue) return false;
  state_->queue.push_back(std::move(work));
  state_->changed.NotifyAll();
  return true;
}

absl::Status VolumeThread::Run(const std::string& what, base::nanoseconds timeout, std::stop_token stop,
                               std::function<absl::Status()> work) {
  struct Result {
    base::Mutex mutex;
    base::CondVar changed;
    std::optional<absl::Status> status ABSL_GUARDED_BY(mutex);
    bool given_up ABSL_GUARDED_BY(mutex) = false;
  };
  const auto result = std::make_shared<Result>();
  const bool posted = Post([result, work = std::move(work)]() -> Deliver {
    {
      MutexLock lock(result->mutex);
      if (result->given_up) return {};
    }
    absl::Status status = work();
    MutexLock lock(result->mutex);
    result->status = std::move(status);
    result->changed.NotifyAll();
    return {};
  });
  if (!posted) return base::Unavailable("{}: too many operations wait for the volume", what);
  MutexLock lock(result->mutex);
  result->changed.WaitFor(result->mutex, stop, timeout,
                          [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return result->status.has_value(); });
  if (result->status) return *result->status;
  result->given_up = true;
  if (stop.stop_requested()) return base::Cancelled("{} was stopped", what);
  return base::DeadlineExceeded("{}: the volume did not answer within {} s", what, base::ToSeconds(timeout));
}

void VolumeThread::Stop() {
  if (!thread_.joinable()) return;
  bool ended = false;
  {
    MutexLock lock(state_->mutex);
    state_->stopping = true;
    state_->changed.NotifyAll();
    ended = state_->changed.WaitFor(state_->mutex, {}, state_->options.grace,
                                    [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return state_->ended; });
  }
  if (ended) return thread_.join();
  {
    MutexLock lock(state_->delivering);
    state_->abandoned = true;
  }
  thread_.detach();
}

}  // namespace medley::worker
