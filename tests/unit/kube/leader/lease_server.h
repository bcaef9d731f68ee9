// A Lease behind FakeClient's hooks, with resourceVersions and conflicts like those of an API server.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "kube/client/testing/fake_client.h"
#include "kube/errors.h"
#include "kube/leader/record.h"

namespace medley::kube {

inline const Key kLease{"medley-system", "medley-operator"};

class LeaseServer {
 public:
  // Called before each request; if it returns an error, the request fails with it. May block. Set it before use.
  std::function<absl::Status(const std::string& verb)> before;

  LeaseServer() {
    client.on_get = [this](const Key& key) { return Get(key); };
    client.on_create = [this](const Object& object) { return Put("create", object); };
    client.on_update = [this](const Object& object, std::string_view) { return Put("update", object); };
  }

  void Set(const LeaderRecord& record) {
    base::MutexLock lock(mutex_);
    Object lease = stored_ ? *stored_ : Object(resources::Leases(), kLease);
    WriteLeaderRecord(record, lease);
    Store(std::move(lease));
  }
  void Remove() {
    base::MutexLock lock(mutex_);
    stored_.reset();
  }
  LeaderRecord record() const {
    base::MutexLock lock(mutex_);
    return stored_ ? ReadLeaderRecord(*stored_) : LeaderRecord();
  }
  Object object() const {
    base::MutexLock lock(mutex_);
    return stored_.value_or(Object());
  }
  int Calls(const std::string& verb) const {
    base::MutexLock lock(mutex_);
    const auto found = calls_.find(verb);
    return found == calls_.end() ? 0 : found->second;
  }
  bool WaitForCalls(const std::string& verb, int n) {
    base::MutexLock lock(mutex_);
    return changed_.WaitFor(mutex_, {}, base::seconds(60), [&] { return calls_[verb] >= n; });
  }
  void Forget() {
    base::MutexLock lock(mutex_);
    calls_.clear();
  }

  FakeClient client;

  static absl::Status Conflict() {
    return ErrorFromHttp(409, R"({"kind":"Status","reason":"Conflict","message":"modified"})", "update lease");
  }

 private:
  absl::Status Enter(const std::string& verb) {
    const absl::Status status = before ? before(verb) : absl::OkStatus();
    base::MutexLock lock(mutex_);
    ++calls_[verb];
    changed_.NotifyAll();
    return status;
  }
  absl::StatusOr<Object> Get(const Key& key) {
    MEDLEY_RETURN_IF_ERROR(Enter("get"));
    base::MutexLock lock(mutex_);
    if (!stored_ || key != kLease) return ErrorFromHttp(404, R"({"kind":"Status","reason":"NotFound"})", "get lease");
    return *stored_;
  }
  absl::StatusOr<Object> Put(const std::string& verb, const Object& object) {
    MEDLEY_RETURN_IF_ERROR(Enter(verb));
    base::MutexLock lock(mutex_);
    if (verb == "create" && stored_) {
      return ErrorFromHttp(409, R"({"kind":"Status","reason":"AlreadyExists"})", "create lease");
    }
    if (verb == "update" && (!stored_ || stored_->resource_version() != object.resource_version())) return Conflict();
    Store(object);
    return *stored_;
  }
  void Store(Object object) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    object.mutable_json()["metadata"]["resourceVersion"] = std::to_string(++version_);
    stored_ = std::move(object);
  }

  mutable base::Mutex mutex_;
  base::CondVar changed_;
  std::optional<Object> stored_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, int> calls_ ABSL_GUARDED_BY(mutex_);
  int version_ ABSL_GUARDED_BY(mutex_) = 100;
};

}  // namespace medley::kube
