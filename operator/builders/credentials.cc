#include "operator/builders/credentials.h"

#include <absl/strings/escaping.h>

#include "common/certificates/job_certificates.h"
#include "operator/api/names.h"
#include "operator/api/resources.h"
#include "operator/builders/contract.h"
#include "operator/builders/owned.h"
#include "operator/builders/worker_env.h"

namespace medley::ops {
namespace {

using kube::Json;

std::string Decode(const kube::Object& secret, const char* entry) {
  const kube::Json& data = secret.At("/data");
  if (!data.is_object()) return "";
  const auto found = data.find(entry);
  std::string value;
  if (found == data.end() || !found->is_string()) return "";
  return absl::Base64Unescape(found->get_ref<const std::string&>(), &value) ? value : "";
}

}  // namespace

kube::Object TokenSecret(const TrainingJob& job, const JobCredentials& credentials, const std::string& name) {
  kube::Object secret = Owned(job, kube::resources::Secrets(), name);
  kube::Json& json = secret.mutable_json();
  json["type"] = "Opaque";
  json["data"] = {{kTokenFile, absl::Base64Escape(credentials.token)}};
  if (!credentials.ca_certificate.empty()) {
    json["data"][kCaCertificateFile] = absl::Base64Escape(credentials.ca_certificate);
    json["data"][kCaKeyFile] = absl::Base64Escape(credentials.ca_key);
  }
  json["immutable"] = true;
  return secret;
}

JobCredentials CredentialsOf(const kube::Object& secret) {
  JobCredentials credentials{Decode(secret, kTokenFile), Decode(secret, kCaCertificateFile),
                             Decode(secret, kCaKeyFile)};
  // Half a CA is invalid: the processes must agree whether they encrypt.
  if (credentials.token.empty() || credentials.ca_certificate.empty() != credentials.ca_key.empty()) return {};
  return credentials;
}

std::string FingerprintOf(const JobCredentials& credentials) {
  return credentials.empty() ? "" : certificates::CredentialsFingerprint(credentials.token, credentials.ca_key);
}

std::string NameOfSecret(const std::string& job, const JobCredentials& credentials) {
  return TokenSecretName(job, FingerprintOf(credentials));
}

void MountCredentials(const std::string& secret, const std::string& fingerprint, kube::Object& pod) {
  bool talks = false;
  Json& spec = pod.mutable_json()["spec"];
  for (Json& volume : spec["volumes"]) {
    if (volume.value("name", "") != kCredentialsVolume) continue;
    volume["secret"]["secretName"] = secret;
    talks = true;
  }
  if (!talks) return;
  for (Json& container : spec["containers"]) {
    if (container.value("name", "") == kWorkerContainer) SetVariable(kFingerprintVariable, fingerprint, container);
  }
}

}  // namespace medley::ops
