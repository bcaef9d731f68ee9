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

// The Secret. Immutable. `name`: as NameOfSecret, but for credentials of an earlier operator.
kube::Object TokenSecret(const TrainingJob& job, const JobCredentials& credentials, const std::string& name);
std::string NameOfSecret(const std::string& job, const JobCredentials& credentials);
// Decodes a Secret as the API server returns it (base64 in `data`); empty when it has no token.
JobCredentials CredentialsOf(const kube::Object& secret);
// Tells credentials apart and reveals nothing of them (certificates::CredentialsFingerprint); empty of none.
std::string FingerprintOf(const JobCredentials& credentials);

// Makes a pod that talks to other processes mount the Secret of this name, and refuse credentials with another
// fingerprint, so that nobody can replace the Secret by one of their own. Does nothing to profilers.
void MountCredentials(const std::string& secret, const std::string& fingerprint, kube::Object& pod);

}  // namespace medley::ops
