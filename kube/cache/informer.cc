#include "kube/cache/informer.h"

#include <algorithm>

#include "common/base/status.h"
#include "kube/cache/listener.h"

namespace medley::kube {
namespace {

constexpr base::nanoseconds kMinResync = base::seconds(1);
constexpr base::nanoseconds kNoResyncLook = std::chrono::hours(1);

base::nanoseconds ClampResync(base::nanoseconds resync) {
  return resync <= base::nanoseconds(0) ? base::nanoseconds(0) : std::max(resync, kMinResync);
}

}  // namespace

Informer::Informer(Client& client, base::Clock& clock, Options options)
    : clock_(clock),
      options_(std::move(options)),
      store_(options_.packed),
      reflector_(client, fifo_, clock, options_.reflector) {}

Informer::~Informer() { Stop(); }

absl::Status Informer::AddIndex(const std::string& name, IndexFunction function) {
  return store_.AddIndex(name, std::move(function));
}

absl::StatusOr<HandlerId> Informer::AddHandler(EventHandler handler, std::optional<base::nanoseconds> resync) {
  using Type = Listener::Notification::Type;
  std::stop_source wake(std::nostopstate);
  HandlerId id = 0;
  {
    base::MutexLock lock(mutex_);
    if (stopped_) {
      return base::FailedPrecondition("adding a handler to the informer of {}: it has stopped", resource().plural);
    }
    id = next_id_++;
    auto listener =
        std::make_shared<Listener>(std::move(handler), ClampResync(resync.value_or(options_.resync)), clock_.Steady());
    for (ObjectPtr& object : store_.List()) {
      listener->Push({.type = Type::kAdd, .now = std::move(object), .flag = true});
    }
    if (initial_done_) listener->Push({.type = Type::kSynced});
    listeners_[id] = std::move(listener);
    wake = resync_wake_;
  }
  wake.request_stop();  // this handler may be the next one to resync
  return id;
}

void Informer::RemoveHandler(HandlerId id) {
  std::shared_ptr<Listener> listener;  // destroyed without holding the lock, because its destructor joins
  base::MutexLock lock(mutex_);
  const auto node = listeners_.extract(id);
  if (!node.empty()) listener = std::move(node.mapped());
}

void Informer::Start() {
  base::MutexLock lock(mutex_);
  if (started_ || stopped_) return;
  started_ = true;
  process_thread_ = std::jthread([this](std::stop_token stop) { Process(stop); });
  reflect_thread_ = std::jthread([this](std::stop_token stop) { reflector_.Run(stop); });
  resync_thread_ = std::jthread([this](std::stop_token stop) { RunResync(stop); });
}

void Informer::Stop() {
  std::map<HandlerId, std::shared_ptr<Listener>> listeners;
  std::vector<std::jthread> threads;
  {
    base::MutexLock lock(mutex_);
    stopped_ = true;
    listeners.swap(listeners_);
    for (std::jthread* thread : {&reflect_thread_, &resync_thread_, &process_thread_}) {
      if (thread->joinable()) threads.push_back(std::move(*thread));
    }
  }
  fifo_.Close();
  for (std::jthread& thread : threads) thread.request_stop();
  for (std::jthread& thread : threads) thread.join();
}

bool Informer::HandlerSynced(HandlerId id) const {
  base::MutexLock lock(mutex_);
  const auto it = listeners_.find(id);
  return it != listeners_.end() && it->second->Synced();
}

absl::Status Informer::WaitForSync(base::nanoseconds timeout, std::stop_token stop) const {
  base::MutexLock lock(mutex_);
  const bool done = synced_.WaitFor(mutex_, stop, timeout, [&] { return HasSynced() || stopped_; });
  if (HasSynced()) return absl::OkStatus();
  if (done || stop.stop_requested()) {
    return base::Cancelled("waiting for the cache of {}: stopped", resource().plural);
  }
  return base::DeadlineExceeded("waiting for the cache of {}: not filled after {} s", resource().plural,
                                base::ToSeconds(timeout));
}

void Informer::Process(std::stop_token stop) {
  while (true) {
    const std::vector<FifoEvent> batch = fifo_.Pop(stop);
    if (batch.empty()) break;
    for (const FifoEvent& event : batch) Handle(event);
    fifo_.Processed(batch);
    base::MutexLock lock(mutex_);
    synced_.NotifyAll();
  }
  base::MutexLock lock(mutex_);
  synced_.NotifyAll();
}

void Informer::Handle(const FifoEvent& event) {
  using Type = FifoEvent::Type;
  const ObjectPtr& object = event.object;
  base::MutexLock lock(mutex_);
  switch (event.type) {
    case Type::kAdded:
    case Type::kUpdated:
      Notify(store_.Put(object), object, false);
      break;
    case Type::kDeleted:
      if (store_.Erase(object->key()) != nullptr) NotifyDeleted(object, false);
      break;
    case Type::kReplaced: {
      const bool initial = !initial_done_;
      const Store::Replaced replaced = store_.Replace(event.objects, event.resource_version);
      for (const ObjectPtr& last : replaced.vanished) NotifyDeleted(last, true);
      for (const auto& [before, now] : replaced.put) Notify(before, now, initial);
      initial_done_ = true;
      for (auto& [id, listener] : listeners_) {
        if (initial) listener->Push({.type = Listener::Notification::Type::kSynced});
      }
      break;
    }
    case Type::kSync:
      Resync();
      break;
    case Type::kBookmark:
      break;
  }
  if (!event.resource_version.empty()) store_.SetResourceVersion(event.resource_version);
}

void Informer::Notify(const ObjectPtr& before, const ObjectPtr& now, bool initial) {
  using Type = Listener::Notification::Type;
  // The handlers already have this version; only a resync sends it again.
  if (before != nullptr && before->resource_version() == now->resource_version()) return;
  for (auto& [id, listener] : listeners_) {
    if (before == nullptr) {
      listener->Push({.type = Type::kAdd, .now = now, .flag = initial});
    } else {
      listener->Push({.type = Type::kUpdate, .before = before, .now = now});
    }
  }
}

void Informer::NotifyDeleted(const ObjectPtr& last, bool unknown) {
  for (auto& [id, listener] : listeners_) {
    listener->Push({.type = Listener::Notification::Type::kDelete, .now = last, .flag = unknown});
  }
}

void Informer::Resync() {
  const std::vector<ObjectPtr> all = store_.List();
  for (auto& [id, listener] : listeners_) {
    if (!listener->due()) continue;
    listener->ClearDue();
    for (const ObjectPtr& object : all) {
      listener->Push({.type = Listener::Notification::Type::kUpdate, .before = object, .now = object});
    }
  }
}

void Informer::RunResync(std::stop_token stop) {
  while (!stop.stop_requested()) {
    const base::SteadyTime now = clock_.Steady();
    base::SteadyTime next = now + kNoResyncLook;
    bool any_due = false;
    std::stop_source wake;
    {
      base::MutexLock lock(mutex_);
      for (auto& [id, listener] : listeners_) {
        listener->MarkDue(now);
        any_due = any_due || listener->due();
        if (const auto at = listener->NextResync()) next = std::min(next, *at);
      }
      resync_wake_ = wake;
    }
    if (any_due && !fifo_.Push({.type = FifoEvent::Type::kSync}, stop)) return;
    const std::stop_callback on_stop(stop, [&] { wake.request_stop(); });
    clock_.SleepUntil(next, wake.get_token());
  }
}

}  // namespace medley::kube
