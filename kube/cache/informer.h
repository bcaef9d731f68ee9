// Mirrors one resource of the API server in a Store and calls handlers for each change (client-go's
// SharedIndexInformer).
//
// - The store changes before the handlers run. Each handler has its own thread and an unbounded buffer, so a handler
//   must only enqueue work. An exception in a handler ends the process.
// - A handler sees the versions of one object in order. A deletion followed by a creation of the same name may arrive
//   as one update: compare UIDs. A handler that is added later first gets all objects of the store.
// - An informer cannot be restarted after Stop. Owner: InformerFactory or a test. Thread-safe.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <thread>

#include "kube/cache/event_fifo.h"
#include "kube/cache/reflector.h"
#include "kube/cache/store.h"

namespace medley::kube {

// Each function may be empty.
struct EventHandler {
  // `initial`: the object existed when the handler was added, or is in the informer's first list.
  std::function<void(const ObjectPtr& object, bool initial)> on_add;
  std::function<void(const ObjectPtr& before, const ObjectPtr& now)> on_update;
  // `last` is the last known state. It may be stale if `unknown`: then the watch missed the deletion.
  std::function<void(const ObjectPtr& last, bool unknown)> on_delete;
};

using HandlerId = uint64_t;

class Informer {
 public:
  struct Options {
    Reflector::Options reflector;
    // How often each object is sent again as an update, unless the handler sets its own period. 0: never; otherwise at
    // least 1 s.
    base::nanoseconds resync = base::nanoseconds(0);
    bool packed = false;  // see Store's constructor
  };

  Informer(Client& client, base::Clock& clock, Options options);
  ~Informer();

  const Store& store() const { return store_; }
  const Resource& resource() const { return options_.reflector.resource; }
  // May be called at any time. Errors: AlreadyExists.
  absl::Status AddIndex(const std::string& name, IndexFunction function);
  // Errors: FailedPrecondition after Stop.
  absl::StatusOr<HandlerId> AddHandler(EventHandler handler, std::optional<base::nanoseconds> resync = std::nullopt);
  // Waits until the handler has returned. Do not call it from the handler itself. Ignores unknown ids.
  void RemoveHandler(HandlerId id);

  void Start();
  void Stop();  // idempotent; joins
  bool HasSynced() const { return fifo_.HasSynced(); }
  // True when the handler has returned from all calls for the first list.
  bool HandlerSynced(HandlerId id) const;
  // Errors: DeadlineExceeded, Cancelled.
  absl::Status WaitForSync(base::nanoseconds timeout, std::stop_token stop) const;

 private:
  class Listener;
  void Process(std::stop_token stop);
  void Handle(const FifoEvent& event);
  void Notify(const ObjectPtr& before, const ObjectPtr& now, bool initial) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NotifyDeleted(const ObjectPtr& last, bool unknown) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Resync() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RunResync(std::stop_token stop);

  base::Clock& clock_;
  const Options options_;
  Store store_;
  EventFifo fifo_;
  Reflector reflector_;
  mutable base::Mutex mutex_;  // also makes registration atomic with the store's changes
  mutable base::CondVar synced_;
  std::map<HandlerId, std::shared_ptr<Listener>> listeners_ ABSL_GUARDED_BY(mutex_);
  HandlerId next_id_ ABSL_GUARDED_BY(mutex_) = 1;
  bool initial_done_ ABSL_GUARDED_BY(mutex_) = false;  // the first list is in the store
  bool started_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::stop_source resync_wake_ ABSL_GUARDED_BY(mutex_);
  std::jthread process_thread_;
  std::jthread reflect_thread_;
  std::jthread resync_thread_;
};

}  // namespace medley::kube
