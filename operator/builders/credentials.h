// The Secret with a job's credentials. Pure.
#pragma once

#include <string>

#include "kube/object.h"
#include "operator/api/training_job.h"
#include "operator/records/connection.h"

namespace medley::ops {

// Names of the entries, which are files in the pods.
inline constexpr char kTokenFile[] = "token";
inline constexpr char kCaCertificateFile[] = "ca.crt";
inline constexpr char kCaKeyFile[] = "ca.key";

// The Secret. Immutable.
kube::Object TokenSecret(const TrainingJob& job, const JobCredentials& credentials);
// Decodes a Secret as the API server returns it (base64 in `data`); empty when it has no token.
JobCredentials CredentialsOf(const kube::Object& secret);
// 64 bits that tell credentials apart and reveal nothing of them, for an annotation of the pods.
std::string FingerprintOf(const JobCredentials& credentials);

}  // namespace medley::ops
