// Stops the planner when its caller cancels the call, and cancels calls that take too long to send their message. A
// handler of gRPC's synchronous server can only poll whether its call is cancelled. So one thread polls all running
// calls, a hundred times per second while there are any.
//
//   CancelWatcher::Watch watch(watcher, context, service_stop);
//   Work(watch.token());
//
// Thread-safe. A Watch must be destroyed before the watcher and before the end of its call.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <stop_token>
#include <thread>

#include "common/base/clock.h"
#include "common/base/mutex.h"

namespace grpc {
class ServerContext;
}

namespace medley::sched {

class CancelWatcher {
 public:
  class Watch {
   public:
    // Requests a stop of `token()` when the call of `context` is cancelled or exceeds its deadline, or when `stop` is
    // requested.
    Watch(CancelWatcher& watcher, const grpc::ServerContext& context, std::stop_token stop);
    ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;
    std::stop_token token() const { return source_.get_token(); }
    // Cancels the call at `time`, unless another time is set before.
    void CancelAt(base::SteadyTime time) { cancel_at_ = time.time_since_epoch().count(); }

   private:
    friend class CancelWatcher;
    CancelWatcher& watcher_;
    const grpc::ServerContext& context_;
    std::stop_source source_;
    std::atomic<int64_t> cancel_at_ = base::SteadyTime::max().time_since_epoch().count();
    std::stop_callback<std::function<void()>> service_stops_;
    std::list<Watch*>::iterator place_;
  };

  CancelWatcher();

 private:
  void Run(std::stop_token stop);

  const base::SystemClock clock_;
  base::Mutex mutex_;
  base::CondVar changed_;
  std::list<Watch*> watches_ ABSL_GUARDED_BY(mutex_);
  std::jthread thread_;  // must be the last member because it uses the others
};

}  // namespace medley::sched
