// Objects, events and errors for the tests of caches.
#pragma once

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "kube/cache/event_fifo.h"
#include "kube/client/testing/fake_client.h"
#include "kube/errors.h"

namespace medley::kube {

inline Object Pod(const std::string& name, const std::string& version, const std::string& ns = "ns") {
  Object pod(resources::Pods(), {ns, name});
  pod.mutable_json()["metadata"]["resourceVersion"] = version;
  pod.mutable_json()["metadata"]["uid"] = "uid-" + name;
  return pod;
}
inline ObjectPtr PodPtr(const std::string& name, const std::string& version) {
  return std::make_shared<const Object>(Pod(name, version));
}
inline ObjectList PodList(std::vector<Object> items, const std::string& version, const std::string& next = "") {
  return {std::move(items), version, next};
}
inline WatchEvent Added(const std::string& name, const std::string& version) {
  return {WatchEvent::Type::kAdded, Pod(name, version)};
}
inline WatchEvent Modified(const std::string& name, const std::string& version) {
  return {WatchEvent::Type::kModified, Pod(name, version)};
}
inline WatchEvent Deleted(const std::string& name, const std::string& version) {
  return {WatchEvent::Type::kDeleted, Pod(name, version)};
}
inline WatchEvent Bookmark(const std::string& version, bool initial_end = false) {
  Object object = Pod("", version);
  if (initial_end) object.SetAnnotation("k8s.io/initial-events-end", "true");
  return {WatchEvent::Type::kBookmark, std::move(object)};
}
inline Json StatusJson(int code, const std::string& reason, const std::string& message = "scripted") {
  return {{"kind", "Status"}, {"code", code}, {"reason", reason}, {"message", message}};
}
inline WatchEvent ErrorEvent(int code, const std::string& reason) {
  return {WatchEvent::Type::kError, Object(StatusJson(code, reason))};
}
inline absl::Status HttpError(int code, const std::string& reason, const std::string& message = "scripted") {
  return ErrorFromHttp(code, StatusJson(code, reason, message).dump(), "test");
}
inline absl::Status Gone() { return HttpError(410, "Expired"); }
inline absl::Status TooMany() { return HttpError(429, "TooManyRequests"); }

// A clock whose sleeps return at once; it records them.
class InstantClock final : public base::Clock {
 public:
  base::WallTime Now() const override { return base::WallTime(base::seconds(1'700'000'000)); }
  base::SteadyTime Steady() const override {
    base::MutexLock lock(mutex_);
    return base::SteadyTime(elapsed_);
  }
  bool SleepUntil(base::SteadyTime deadline, std::stop_token stop) override {
    base::MutexLock lock(mutex_);
    sleeps_.push_back(deadline - base::SteadyTime(elapsed_));
    elapsed_ = std::max(elapsed_, deadline.time_since_epoch());
    return !stop.stop_requested();
  }
  void Advance(base::nanoseconds by) {
    base::MutexLock lock(mutex_);
    elapsed_ += by;
  }
  std::vector<base::nanoseconds> sleeps() const {
    base::MutexLock lock(mutex_);
    return sleeps_;
  }

 private:
  mutable base::Mutex mutex_;
  base::nanoseconds elapsed_ ABSL_GUARDED_BY(mutex_) = base::seconds(1000);
  std::vector<base::nanoseconds> sleeps_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace medley::kube
