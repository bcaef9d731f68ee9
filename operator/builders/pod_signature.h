// Signatures of pods. Who may create pods in a namespace can write a job as their owner and copy what its pods have. A
// pod counts as a unit of its job only if the operator has signed it, or if a plan has reserved its name.
//
// The signature is HMAC-SHA256 with the key of records over namespace and name of the pod, the UID of its controller,
// what the pod claims to be (job, pool and role), and the time of signing. It is in the environment of the container
// `worker`, which nobody can change. A copy on another pod, or of another job, is no signature. On a pod of the same
// name it is one, but the API server, which alone writes creationTimestamp and UID, has created that pod later:
// IsInTime, and operator/capacity/signed_pods.h for what is made within that time. Pure; thread-safe.
#pragma once

#include <optional>
#include <string>

#include "common/base/clock.h"
#include "kube/object.h"
#include "operator/records/record_keys.h"

namespace medley::ops {

// What the container of a pod says of the pod. Empty strings: it does not say it.
struct PodClaims {
  std::string job;
  std::string pool;  // of a coordinator: empty
  std::string role;
  std::string credentials;  // fingerprint of those that it takes (credentials.h)
  std::string signature;    // milliseconds since 1970, "." and 64 hexadecimal digits
};
PodClaims ClaimsOf(const kube::Object& pod);

// Signs a pod that is complete and has a controller. `at`: now, by the clock of the API server.
void SignPod(const RecordKeys& keys, base::WallTime at, kube::Object& pod);
// When one of `keys` has signed it, in whole milliseconds; nullopt: none has.
std::optional<base::WallTime> SignedAt(const RecordKeys& keys, const kube::Object& pod);

// A pod may be created this much before its signature, where API servers' clocks differ, and this much after it, in
// which a request to create it ends.
inline constexpr base::nanoseconds kSignedAhead = std::chrono::minutes(1);
inline constexpr base::nanoseconds kSignedFor = std::chrono::minutes(2);
// True when the API server created the pod at the time `signed_at`. False: it is a copy, made later.
bool IsInTime(base::WallTime signed_at, const kube::Object& pod);

}  // namespace medley::ops
