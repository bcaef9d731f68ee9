// Parts of hammer_test: a fast clock, random faults, and a witness of the events that handlers receive. Thread-safe.
#pragma once

#include <atomic>
#include <map>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/base/rng.h"
#include "kube/cache/informer.h"
#include "kube/errors.h"
#include "kube/resource_version.h"
#include "localcluster/apiserver/faults.h"

namespace medley::kube {

// Time runs 50 times as fast, so that the test does not wait for a reflector's backoff (up to a minute).
class FastClock final : public base::Clock {
 public:
  base::WallTime Now() const override { return real_.Now(); }
  base::SteadyTime Steady() const override { return began_ + (real_.Steady() - began_) * kSpeed; }
  bool SleepUntil(base::SteadyTime deadline, std::stop_token stop) override {
    return real_.SleepUntil(began_ + (deadline - began_) / kSpeed, std::move(stop));
  }

 private:
  static constexpr int kSpeed = 50;
  base::SystemClock real_;
  const base::SteadyTime began_ = real_.Steady();
};

// A fault of the connection, of any kind that a client must survive.
inline localcluster::apiserver::Fault RandomFault(base::Rng& rng) {
  using Kind = localcluster::apiserver::Fault::Kind;
  localcluster::apiserver::Fault fault;
  const uint64_t which = rng.Below(10);
  fault.verb = which < 6 ? "watch" : which < 8 ? "list" : which < 9 ? "patch" : "delete";
  constexpr Kind kWatch[] = {Kind::kWatchCut,     Kind::kWatchCut, Kind::kHalfLine,   Kind::kWatchClose,
                             Kind::kWatchExpired, Kind::kBookmark, Kind::kWatchError, Kind::kSlowBody,
                             Kind::kDrop,         Kind::kStatus};
  constexpr Kind kOther[] = {Kind::kStatus, Kind::kStatus, Kind::kSlowBody, Kind::kDrop};
  const bool watch = fault.verb == "watch";
  fault.kind = watch ? kWatch[rng.Below(10)] : kOther[rng.Below(4)];
  constexpr int kWriteCodes[] = {409, 429, 500};
  constexpr int kReadCodes[] = {410, 429, 500, 504};
  const bool read = watch || fault.verb == "list";
  fault.code = read ? kReadCodes[rng.Below(4)] : kWriteCodes[rng.Below(3)];
  if (fault.kind == Kind::kWatchError) fault.code = rng.Below(2) == 0 ? 429 : 500;
  fault.retry_after_seconds = fault.code == 429 ? 1 : 0;
  fault.events = static_cast<int>(rng.Below(20));
  fault.delay = base::milliseconds(rng.Below(30));
  return fault;
}

// Causes, between an informer and a client of a real server, the faults that RandomFault causes on the connection.
class FaultyClient final : public Client {
 public:
  FaultyClient(Client& client, uint64_t seed) : client_(client), rng_(seed) {}

  void SetFaults(bool on) { on_ = on; }
  size_t faults() const { return faults_; }

  absl::StatusOr<ObjectList> List(const Resource& resource, const ListOptions& options) override {
    if (const absl::Status fault = Fail(); !fault.ok()) return fault;
    return client_.List(resource, options);
  }
  absl::Status Watch(const Resource& resource, const WatchOptions& options, std::stop_token stop,
                     const std::function<bool(WatchEvent)>& on_event) override {
    if (const absl::Status fault = Fail(); !fault.ok()) return fault;
    uint64_t left = Below(20);
    const bool tells = Below(2) == 0;
    bool cut = false;
    // Cuts the stream at the first event after `left` others.
    const absl::Status status = client_.Watch(resource, options, stop, [&](WatchEvent event) {
      if (!on_ || left-- > 0) return on_event(std::move(event));
      cut = true;
      ++faults_;
      if (tells) on_event({WatchEvent::Type::kError, Object(StatusOf(kCodes[Below(4)]))});
      return false;
    });
    return cut && !tells ? StreamCut("scripted") : status;
  }
  absl::StatusOr<Object> Get(const Resource& resource, const Key& key) override { return client_.Get(resource, key); }
  absl::StatusOr<Object> Create(const Resource& resource, const Object& object) override {
    return client_.Create(resource, object);
  }
  absl::StatusOr<Object> Update(const Resource& resource, const Object& object, std::string_view sub) override {
    return client_.Update(resource, object, sub);
  }
  absl::StatusOr<Object> Patch(const Resource& resource, const Key& key, PatchType type, const Json& patch,
                               const PatchOptions& options, std::string_view sub) override {
    return client_.Patch(resource, key, type, patch, options, sub);
  }
  absl::Status Delete(const Resource& resource, const Key& key, const DeleteOptions& options) override {
    return client_.Delete(resource, key, options);
  }
  absl::StatusOr<std::string> GetRaw(std::string_view path) override { return client_.GetRaw(path); }
  absl::Status StreamRaw(std::string_view path, std::stop_token stop,
                         const std::function<bool(std::string_view)>& on_bytes) override {
    return client_.StreamRaw(path, std::move(stop), on_bytes);
  }

 private:
  static constexpr int kCodes[] = {410, 429, 500, 504};
  static Json StatusOf(int code) {
    const char* message = code == 504 ? "Too large resource version: 2, current: 1" : "scripted";
    return {{"kind", "Status"}, {"code", code}, {"message", message}};
  }
  uint64_t Below(uint64_t n) {
    base::MutexLock lock(mutex_);
    return rng_.Below(n);
  }
  absl::Status Fail() {
    if (!on_) return absl::OkStatus();
    const uint64_t which = Below(16);  // two of three calls succeed
    if (which > 4) return absl::OkStatus();
    ++faults_;
    if (which == 4) return ConnectionRefused("scripted");
    return ErrorFromHttp(kCodes[which], StatusOf(kCodes[which]).dump(), "scripted");
  }

  Client& client_;
  std::atomic<bool> on_ = false;
  std::atomic<size_t> faults_ = 0;
  base::Mutex mutex_;
  base::Rng rng_ ABSL_GUARDED_BY(mutex_);
};

// What one handler knows from its events; checks every event against it.
class Witness {
 public:
  EventHandler Handler() {
    return {.on_add = [this](const ObjectPtr& o, bool) { See(*o, false); },
            .on_update = [this](const ObjectPtr&, const ObjectPtr& o) { See(*o, true); },
            .on_delete =
                [this](const ObjectPtr& o, bool) {
                  base::MutexLock lock(mutex_);
                  Check(*o);
                  if (live_.erase(o->key()) == 0) wrong_.push_back("deleted, but was not there: " + Name(*o));
                }};
  }
  std::map<Key, std::string> live() {
    base::MutexLock lock(mutex_);
    return live_;
  }
  std::vector<std::string> wrong() {
    base::MutexLock lock(mutex_);
    return wrong_;
  }
  int64_t events() {
    base::MutexLock lock(mutex_);
    return events_;
  }

 private:
  static std::string Name(const Object& o) { return o.key().ToString() + " at " + o.resource_version(); }
  void Check(const Object& object) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    ++events_;
    std::string& highest = highest_[object.key()];
    const std::string version = object.resource_version();
    if (!highest.empty() && CompareResourceVersion(version, highest) == std::strong_ordering::less) {
      wrong_.push_back("went back from " + highest + ": " + Name(object));
    }
    highest = version;
  }
  void See(const Object& object, bool update) {
    base::MutexLock lock(mutex_);
    Check(object);
    if (live_.contains(object.key()) != update) {
      wrong_.push_back((update ? "updated, but was not there: " : "added twice: ") + Name(object));
    }
    live_[object.key()] = object.resource_version();
  }

  base::Mutex mutex_;
  std::map<Key, std::string> highest_ ABSL_GUARDED_BY(mutex_);
  std::map<Key, std::string> live_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> wrong_ ABSL_GUARDED_BY(mutex_);
  int64_t events_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace medley::kube
