// Signatures of pods. Who may create pods in a namespace can write a job as their owner and copy what its pods have. A
// pod counts as a unit of its job only if the operator has signed it, or if a plan has reserved its name.
//
// The signature is HMAC-SHA256 with the key of records over namespace and name of the pod, the UID of its controller,
// and what the pod claims to be: job, pool and role. It is in the environment of the container `worker`, which nobody
// can change. A copy on another pod, or of another job, is no signature; one on a pod of the same name, made after the
// operator's was deleted, is one. Pure; thread-safe.
#pragma once

#include <string>

#include "kube/object.h"
#include "operator/records/record_keys.h"

namespace medley::ops {

// What the container of a pod says of the pod. Empty strings: it does not say it.
struct PodClaims {
  std::string job;
  std::string pool;  // of a coordinator: empty
  std::string role;
  std::string credentials;  // fingerprint of those that it takes (credentials.h)
  std::string signature;
};
PodClaims ClaimsOf(const kube::Object& pod);

// Signs a pod that is complete and has a controller.
void SignPod(const RecordKeys& keys, kube::Object& pod);
bool IsSigned(const RecordKeys& keys, const kube::Object& pod);

}  // namespace medley::ops
