// Keeps an object of the job as the operator writes it, whoever deletes or edits it.
//
// The operator applies the object (server-side apply) and remembers a digest of what resulted: the spec, with the API
// server's defaults, the operator's own labels and the owner. When the cached object differs, another client has
// deleted or changed it, and it is applied again. Fields, labels and annotations of others stay. An object that is
// changed again and again is restored after growing pauses, 1 s to 1 min, so that two controllers that disagree make no
// hot loop.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "common/base/clock.h"
#include "kube/object.h"

namespace medley::ops::lifecycle {

class Pass;

struct KeptObject {
  std::string uid;          // of the object; empty: this process has not written it yet
  std::string version;      // resourceVersion of the cached object that was compared last
  uint64_t digest = 0;      // of the object that resulted
  int restores = 0;         // one after the other, without a quiet time in between
  base::SteadyTime next{};  // no request before
  base::SteadyTime restored{};
};

struct KeepingState {
  static constexpr char kOwner[] = "keeping";
  std::map<std::string, KeptObject> kept;  // by kind
};

void ForgetKept(Pass& pass, const kube::Resource& resource);  // the object is not wanted any more

enum class Seen { kInCache, kOnlyOnServer };

// `object` returns what must exist; it is called only when the object is written. `changed`: the operator itself wants
// another object than the one that it has written. `seen`: kOnlyOnServer for a kind without a cache; the object is then
// read at most once a minute. Errors: those of the API server; Unavailable and FailedPrecondition, with an Event: the
// name belongs to another owner, whose object is not touched.
absl::Status KeepObject(Pass& pass, const kube::Resource& resource, const std::string& name, bool changed,
                        const std::function<kube::Object()>& object, Seen seen = Seen::kInCache);

// Creates the object if none of its name exists, and returns the one that exists. For objects that are never changed.
absl::StatusOr<kube::Object> EnsureOwned(Pass& pass, const kube::Resource& resource, const kube::Object& object,
                                         bool probably_exists = false);

// True when it is time to look at an object that only the API server holds, or to restore one.
bool IsDue(Pass& pass, const KeptObject& kept);
// Looks again after a minute.
void LookLater(Pass& pass, KeptObject& kept);
// Counts a restore, and reports it: `how` is "deleted" or "changed".
void CountRestore(Pass& pass, KeptObject& kept, const kube::Resource& resource, const std::string& name,
                  const char* how);

}  // namespace medley::ops::lifecycle
