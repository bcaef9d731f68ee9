// A profile: what each layer of a model costs on one pool. All jobs of a namespace with the same model, schema and
// batch share it, so it has a life of its own: it is asked for, measured by a profiler pod, and stored in a ConfigMap.
// Values.
#pragma once

#include <compare>
#include <optional>
#include <string>

#include "kube/object.h"

namespace medley::ops {

struct ProfileId {
  std::string ns;
  std::string hash;  // of model, schema and batch (model::ProfileHash); no dot
  std::string pool;
  auto operator<=>(const ProfileId&) const = default;
};

// The key of a controller's queue, and back; nullopt for another key.
kube::Key KeyOf(const ProfileId& id);
std::optional<ProfileId> ProfileIdOf(const kube::Key& key);

// What is known of a profile that a job wants and that is not stored.
struct ProfileProgress {
  enum class Stage {  // the worse, the later
    kWaiting,         // for a free unit of the pool
    kRunning,         // a profiler pod exists
    kFailed,          // and is tried again
    kRefused,         // the profiler says that a retry will not help: the data cannot be read, for example
  };
  Stage stage = Stage::kWaiting;
  std::string reason;   // CamelCase
  std::string message;  // of sentences
  int failures = 0;     // since a job wants it
  bool operator==(const ProfileProgress&) const = default;
};

}  // namespace medley::ops
