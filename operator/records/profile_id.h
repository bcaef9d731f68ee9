// A profile says what each layer of a model costs on one pool. Jobs of a namespace with the same model, training data,
// schema and batch share it, so it belongs to no job: it is asked for, measured by a profiler pod, and stored in a
// ConfigMap. Values.
#pragma once

#include <compare>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "kube/object.h"
#include "operator/api/reasons.h"

namespace medley::ops {

struct ProfileId {
  std::string ns;
  std::string hash;  // model::ProfileHash: 16 hexadecimal digits
  std::string pool;
  auto operator<=>(const ProfileId&) const = default;
};

// The key of a controller's queue, and back; nullopt for another key.
kube::Key KeyOf(const ProfileId& id);
std::optional<ProfileId> ProfileIdOf(const kube::Key& key);

// What is known of a profile that a job wants and that is not stored.
struct ProfileProgress {
  enum class Stage {  // a pool reports the profile with the largest stage
    kWaiting,         // for a free unit of the pool
    kRunning,         // a profiler pod exists
    kFailed,          // the last attempt failed; it is retried
    kRefused,         // the profiler says that a retry will not help: the data cannot be read, for example
  };
  Stage stage = Stage::kWaiting;
  Reason reason = Reason::kMeasuring;  // of the pool's condition Profiled
  std::string message;                 // full sentences, the cause first
  std::string public_message;  // for the pool, which all namespaces see: the same without words of the profiler's log
  // The jobs whose pod template was tried, by UID: how often the profiler failed since the job wants the profile or the
  // pool was edited, and those for which a retry will not help.
  std::map<std::string, int> failures;
  std::set<std::string> refused;
  // What the profiler says in the message, without the rest of it, which is then the public message. Empty: nothing.
  std::string cause{};
  bool operator==(const ProfileProgress&) const = default;
};

}  // namespace medley::ops
