// Tells a planner that its caller has left. gRPC's synchronous server lets a handler ask whether its call is cancelled,
// but tells nobody; so one thread asks for all running calls, a hundred times a second while there are any.
//
//   CancelWatcher::Watch watch(watcher, context, service_stop);
//   Work(watch.token());
//
// Thread-safe. Watches end before the watcher, and before their calls do.
#pragma once

#include <functional>
#include <list>
#include <stop_token>
#include <thread>

#include "common/base/mutex.h"

namespace grpc {
class ServerContext;
}

namespace medley::sched {

class CancelWatcher {
 public:
  class Watch {
   public:
    // `token()` is stopped when the call of `context` is cancelled or runs out of time, or when `stop` is requested.
    Watch(CancelWatcher& watcher, const grpc::ServerContext& context, std::stop_token stop);
    ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;
    std::stop_token token() const { return source_.get_token(); }

   private:
    friend class CancelWatcher;
    CancelWatcher& watcher_;
    const grpc::ServerContext& context_;
    std::stop_source source_;
    std::stop_callback<std::function<void()>> service_stops_;
    std::list<Watch*>::iterator place_;
  };

  CancelWatcher();

 private:
  void Run(std::stop_token stop);

  base::Mutex mutex_;
  base::CondVar changed_;
  std::list<Watch*> watches_ ABSL_GUARDED_BY(mutex_);
  std::jthread thread_;  // the last member: it uses the others
};

}  // namespace medley::sched
