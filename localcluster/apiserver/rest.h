// The verbs that read and write objects, like the registry layer of a real API server.
//
// Thread-safe. Writes are optimistic: read, compute, commit; if another writer was faster, start again.
#pragma once

#include <absl/status/statusor.h>

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "localcluster/apiserver/registry.h"
#include "localcluster/apiserver/store.h"

namespace medley::localcluster::apiserver {

enum class FieldValidation { kIgnore, kWarn, kStrict };

struct WriteOptions {
  bool dry_run = false;
  FieldValidation validation = FieldValidation::kWarn;
  std::string manager = "unknown";
  std::string subresource;                       // "", "status", "scale"
  bool force = false;                            // server-side apply
  bool binding = false;                          // of a pod; only a binding may set its node
  bool restore = false;                          // a created object keeps its UID, its creation time and its status
  std::vector<std::string>* warnings = nullptr;  // borrowed; may be null
};

struct DeleteSpec {
  std::optional<std::string> uid;
  std::optional<std::string> resource_version;
  std::optional<int64_t> grace_seconds;
  std::string propagation;  // "", Background, Foreground, Orphan
  bool dry_run = false;
};

struct Deleted {
  kube::ObjectPtr object;  // its last state if it was removed, else its current state
  bool removed = false;    // false: it waits for its finalizers or its node
};

class Rest {
 public:
  // All references are borrowed. `random` returns 64 random bits; one thread at a time calls it.
  Rest(Registry& registry, Store& store, base::Clock& clock, std::function<uint64_t()> random);

  absl::StatusOr<kube::ObjectPtr> Get(const ResourceInfo& info, const kube::Key& key) const;
  // `object`: the decoded body. Its namespace is set to `ns`.
  absl::StatusOr<kube::ObjectPtr> Create(const ResourceInfo& info, const std::string& ns, kube::Json object,
                                         const WriteOptions& options);
  // `change` computes the new object from the current one. It may be called more than once.
  using ChangeFn = std::function<absl::StatusOr<kube::Json>(const kube::Json& current)>;
  absl::StatusOr<kube::ObjectPtr> Modify(const ResourceInfo& info, const kube::Key& key, const ChangeFn& change,
                                         const WriteOptions& options);
  // Server-side apply. Creates the object if it does not exist, and then sets `created`.
  absl::StatusOr<kube::ObjectPtr> Apply(const ResourceInfo& info, const kube::Key& key, const kube::Json& config,
                                        const WriteOptions& options, bool* created);
  absl::StatusOr<Deleted> Delete(const ResourceInfo& info, const kube::Key& key, const DeleteSpec& spec);

  // Removes unknown fields, checks the types of built-in kinds and sets defaults. Errors: 400, depending on `options`.
  absl::Status Shape(const ResourceInfo& info, kube::Json* object, const WriteOptions& options,
                     bool defaults = true) const;
  // Removes a name from metadata.finalizers. Removes the object too if that was the last thing that it waited for.
  absl::Status RemoveFinalizer(const ResourceInfo& info, const kube::Key& key, const std::string& name);
  // Completes the deletion of a terminating namespace that is empty.
  void FinishNamespace(const std::string& name);
  // The registry changes when a CRD is written.
  Registry& registry() { return registry_; }
  Store& store() { return store_; }
  base::Clock& clock() { return clock_; }

 private:
  absl::Status Prepare(const ResourceInfo& info, const std::string& ns, kube::Json* object,
                       const WriteOptions& options);
  absl::StatusOr<kube::Json> Next(const ResourceInfo& info, const kube::Key& key, const kube::Json& current,
                                  kube::Json next, const WriteOptions& options) const;
  absl::Status Check(const ResourceInfo& info, const kube::Json* old, const kube::Json& object) const;
  absl::Status CheckNamespace(const ResourceInfo& info, const std::string& ns) const;
  absl::StatusOr<std::optional<Deleted>> TryDelete(const ResourceInfo& info, const kube::Key& key,
                                                   const DeleteSpec& spec);
  // Stores `next`, or removes the object when nothing keeps it. Null when another request changed it meanwhile.
  kube::ObjectPtr Commit(const ResourceInfo& info, const kube::Key& key, const kube::ObjectPtr& current,
                         kube::Json next);
  void AfterCommit(const ResourceInfo& info, const kube::ObjectPtr& object, bool deleted);
  std::string NewUid();
  std::string RandomSuffix();

  Registry& registry_;
  Store& store_;
  base::Clock& clock_;
  base::Mutex random_mutex_;
  const std::function<uint64_t()> random_ ABSL_GUARDED_BY(random_mutex_);
  std::atomic<uint64_t> serial_ = 0;
};

// True if `object` is terminating and has no more finalizers or grace period to wait for.
bool CanBeRemoved(const kube::Json& object);

}  // namespace medley::localcluster::apiserver
