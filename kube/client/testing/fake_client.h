// A scripted implementation of Client, for tests. Thread-safe.
//
// Queues answer LISTs and WATCHes in order, and the options of each call are recorded. A LIST without a script waits
// for one until its stop token, Close or a minute has passed. A WATCH without a script stays open until its stop token.
// The other verbs call hooks.
#pragma once

#include <deque>
#include <vector>

#include "common/base/mutex.h"
#include "common/base/status.h"
#include "kube/client.h"

namespace medley::kube {

class FakeClient final : public Client {
 public:
  struct WatchScript {
    std::vector<WatchEvent> events;
    absl::Status end;   // returned after the events
    bool hold = false;  // stay open after the events, until stopped
    std::function<void()> before_events = nullptr;
    std::function<void()> before_end = nullptr;
  };

  void ScriptList(absl::StatusOr<ObjectList> answer) {
    base::MutexLock lock(mutex_);
    list_script_.push_back(std::move(answer));
    changed_.NotifyAll();
  }
  void ScriptWatch(WatchScript script) {
    base::MutexLock lock(mutex_);
    watch_script_.push_back(std::move(script));
  }
  std::vector<ListOptions> lists() const {
    base::MutexLock lock(mutex_);
    return lists_;
  }
  std::vector<WatchOptions> watches() const {
    base::MutexLock lock(mutex_);
    return watches_;
  }
  // Waits until `n` watches have been opened. Returns false after a minute of real time.
  bool WaitForWatches(size_t n) {
    base::MutexLock lock(mutex_);
    return changed_.WaitFor(mutex_, {}, std::chrono::seconds(60), [&] { return watches_.size() >= n; });
  }
  bool WaitForLists(size_t n) {
    base::MutexLock lock(mutex_);
    return changed_.WaitFor(mutex_, {}, std::chrono::seconds(60), [&] { return lists_.size() >= n; });
  }
  // Ends LISTs that wait for a script. Call it before joining the threads that make them.
  void Close() {
    base::MutexLock lock(mutex_);
    closed_ = true;
    changed_.NotifyAll();
  }

  std::function<absl::StatusOr<Object>(const Key&)> on_get;
  std::function<absl::StatusOr<Object>(const Object&)> on_create;
  std::function<absl::StatusOr<Object>(const Object&, std::string_view subresource)> on_update;
  std::function<absl::StatusOr<Object>(const Key&, const Json&)> on_patch;
  std::function<absl::Status(const Key&)> on_delete;

  absl::StatusOr<Object> Get(const Resource&, const Key& key) override { return on_get ? on_get(key) : Unscripted(); }
  absl::StatusOr<Object> Create(const Resource&, const Object& object) override {
    return on_create ? on_create(object) : Unscripted();
  }
  absl::StatusOr<Object> Update(const Resource&, const Object& object, std::string_view sub) override {
    return on_update ? on_update(object, sub) : Unscripted();
  }
  absl::StatusOr<Object> Patch(const Resource&, const Key& key, PatchType, const Json& patch, const PatchOptions&,
                               std::string_view) override {
    return on_patch ? on_patch(key, patch) : Unscripted();
  }
  absl::Status Delete(const Resource&, const Key& key, const DeleteOptions&) override {
    return on_delete ? on_delete(key) : Unscripted().status();
  }
  absl::StatusOr<std::string> GetRaw(std::string_view) override { return Unscripted().status(); }
  absl::Status StreamRaw(std::string_view, std::stop_token, const std::function<bool(std::string_view)>&) override {
    return Unscripted().status();
  }

  absl::StatusOr<ObjectList> List(const Resource&, const ListOptions& options) override {
    base::MutexLock lock(mutex_);
    lists_.push_back(options);
    changed_.NotifyAll();
    changed_.WaitFor(mutex_, options.stop, std::chrono::seconds(60), [&] { return closed_ || !list_script_.empty(); });
    if (list_script_.empty()) return Unscripted().status();
    auto answer = std::move(list_script_.front());
    list_script_.pop_front();
    return answer;
  }

  absl::Status Watch(const Resource&, const WatchOptions& options, std::stop_token stop,
                     const std::function<bool(WatchEvent)>& on_event) override {
    WatchScript script{.hold = true};
    {
      base::MutexLock lock(mutex_);
      watches_.push_back(options);
      changed_.NotifyAll();
      if (!watch_script_.empty()) {
        script = std::move(watch_script_.front());
        watch_script_.pop_front();
      }
    }
    if (script.before_events) script.before_events();
    for (WatchEvent& event : script.events) {
      if (stop.stop_requested() || !on_event(std::move(event))) return absl::OkStatus();
    }
    if (script.before_end) script.before_end();
    if (script.hold) {
      base::MutexLock lock(mutex_);
      changed_.Wait(mutex_, stop, [] { return false; });
    }
    return script.end;
  }

 private:
  static absl::StatusOr<Object> Unscripted() { return base::Unavailable("the test has scripted no answer"); }

  mutable base::Mutex mutex_;
  base::CondVar changed_;
  std::deque<absl::StatusOr<ObjectList>> list_script_ ABSL_GUARDED_BY(mutex_);
  std::deque<WatchScript> watch_script_ ABSL_GUARDED_BY(mutex_);
  std::vector<ListOptions> lists_ ABSL_GUARDED_BY(mutex_);
  std::vector<WatchOptions> watches_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace medley::kube
