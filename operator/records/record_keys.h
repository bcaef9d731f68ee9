// Signatures of what the operator stores in the namespaces of users and reads back: plans, profiles, admitted specs.
//
// Who may edit ConfigMaps in a namespace may edit these records. The operator therefore signs each with HMAC-SHA256 and
// a key that only it can read, and believes no record with another signature, or with none. A signature covers the kind
// of the record, its namespace and name, the UID of the job, and its data, so that a record cannot be moved to another
// job. It does not cover the time: an earlier record of the same job, put back, has a good signature.
//
// The secrets of jobs follow from the same keys (job_credentials.h), so that the operator reads no Secret of users.
#pragma once

#include <absl/status/status.h>

#include <memory>
#include <string>
#include <vector>

#include "kube/object.h"

namespace medley::ops {

// Annotation of a record: "v1:" and 64 hexadecimal digits.
inline constexpr char kSignatureAnnotation[] = "medley.dev/signature";

enum class RecordKind { kPlan, kProfile, kSpec };

// The key that signs, and further ones whose signatures are believed. Immutable; copies share the keys. Thread-safe.
class RecordKeys {
 public:
  // A random key that ends with the process: what it signs, no other process believes.
  RecordKeys();
  // `keys`: the first signs. Each has at least 32 bytes.
  explicit RecordKeys(std::vector<std::string> keys);

  // Sets the annotation of `record`, a ConfigMap that is complete. `owner_uid`: of the job; empty for profiles.
  void Sign(RecordKind kind, const std::string& owner_uid, kube::Object& record) const;
  // Errors: PermissionDenied, a clause that says what is wrong with which ConfigMap.
  absl::Status Check(RecordKind kind, const std::string& owner_uid, const kube::Object& record) const;
  // True when the first key has signed it, so that it need not be signed again. Precondition: Check is OK.
  bool IsCurrent(RecordKind kind, const std::string& owner_uid, const kube::Object& record) const;

  // Secrets that follow from `purpose`, a list of strings, and from each key, that which signs first: HMAC-SHA256 as 64
  // hexadecimal digits. Who has one learns nothing of the key, of other secrets and of signatures.
  std::vector<std::string> Derive(const std::vector<std::string>& purpose) const;

 private:
  std::shared_ptr<const std::vector<std::string>> keys_;
};

}  // namespace medley::ops
