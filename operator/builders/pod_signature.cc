#include "operator/builders/pod_signature.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "operator/api/resources.h"
#include "operator/builders/worker_env.h"

namespace medley::ops {
namespace {

using kube::Json;

constexpr char kSignatureVariable[] = "MEDLEY_POD_SIGNATURE";
constexpr std::string_view kRoleFlag = "--role=";

std::vector<std::string> SignaturesOf(const RecordKeys& keys, const kube::Object& pod) {
  const PodClaims claims = ClaimsOf(pod);
  const auto owner = pod.controller();
  const kube::Key key = pod.key();
  return keys.Derive({"pod", key.ns, key.name, owner ? owner->uid : "", claims.job, claims.pool, claims.role});
}

}  // namespace

PodClaims ClaimsOf(const kube::Object& pod) {
  PodClaims claims;
  for (const Json& container : pod.At("/spec/containers")) {
    if (!container.is_object() || container.value("name", Json()) != kWorkerContainer) continue;
    for (const Json& entry : container.value("env", Json::array())) {
      const kube::Object variable(entry);
      const std::string name = variable.String("/name");
      const std::string value = variable.String("/value");
      if (name == "MEDLEY_JOB_NAME") claims.job = value;
      if (name == "MEDLEY_POOL") claims.pool = value;
      if (name == kFingerprintVariable) claims.credentials = value;
      if (name == kSignatureVariable) claims.signature = value;
    }
    for (const Json& argument : container.value("args", Json::array())) {
      const std::string text = argument.is_string() ? argument.get<std::string>() : "";
      if (text.starts_with(kRoleFlag)) claims.role = text.substr(kRoleFlag.size());
    }
    break;
  }
  return claims;
}

void SignPod(const RecordKeys& keys, kube::Object& pod) {
  const std::string signature = SignaturesOf(keys, pod).front();
  for (Json& container : pod.mutable_json()["spec"]["containers"]) {
    if (container.value("name", "") == kWorkerContainer) SetVariable(kSignatureVariable, signature, container);
  }
}

bool IsSigned(const RecordKeys& keys, const kube::Object& pod) {
  const std::string shown = ClaimsOf(pod).signature;
  if (shown.empty()) return false;
  const std::vector<std::string> good = SignaturesOf(keys, pod);
  return std::find(good.begin(), good.end(), shown) != good.end();
}

}  // namespace medley::ops
