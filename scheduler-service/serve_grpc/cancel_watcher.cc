#include "scheduler-service/serve_grpc/cancel_watcher.h"

#include <grpcpp/server_context.h>

namespace medley::sched {
namespace {

constexpr std::chrono::milliseconds kPeriod{10};

}  // namespace

CancelWatcher::Watch::Watch(CancelWatcher& watcher, const grpc::ServerContext& context, std::stop_token stop)
    : watcher_(watcher), context_(context), service_stops_(std::move(stop), [this] { source_.request_stop(); }) {
  base::MutexLock lock(watcher_.mutex_);
  place_ = watcher_.watches_.insert(watcher_.watches_.end(), this);
  if (watcher_.watches_.size() == 1) watcher_.changed_.NotifyAll();
}

CancelWatcher::Watch::~Watch() {
  base::MutexLock lock(watcher_.mutex_);
  watcher_.watches_.erase(place_);
}

CancelWatcher::CancelWatcher() : thread_([this](std::stop_token stop) { Run(std::move(stop)); }) {}

void CancelWatcher::Run(std::stop_token stop) {
  base::MutexLock lock(mutex_);
  while (!stop.stop_requested()) {
    changed_.Wait(mutex_, stop, [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return !watches_.empty(); });
    const int64_t now = clock_.Steady().time_since_epoch().count();
    for (Watch* watch : watches_) {
      if (now > watch->cancel_at_) watch->context_.TryCancel();
      if (!watch->source_.stop_requested() && watch->context_.IsCancelled()) watch->source_.request_stop();
    }
    changed_.WaitFor(mutex_, stop, kPeriod, [] { return false; });
  }
}

}  // namespace medley::sched
