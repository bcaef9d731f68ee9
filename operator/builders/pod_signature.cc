#include "operator/builders/pod_signature.h"

#include <charconv>
#include <cstdint>
#include <string_view>
#include <vector>

#include "common/base/secrets.h"
#include "operator/api/resources.h"
#include "operator/builders/worker_env.h"

namespace medley::ops {
namespace {

using kube::Json;

constexpr char kSignatureVariable[] = "MEDLEY_POD_SIGNATURE";
constexpr std::string_view kRoleFlag = "--role=";

int64_t MillisecondsOf(base::WallTime time) {
  return std::chrono::duration_cast<base::milliseconds>(time.time_since_epoch()).count();
}

std::vector<std::string> SignaturesOf(const RecordKeys& keys, const PodClaims& claims, const std::string& at,
                                      const kube::Object& pod) {
  const auto owner = pod.controller();
  const kube::Key key = pod.key();
  return keys.Derive({"pod", key.ns, key.name, owner ? owner->uid : "", claims.job, claims.pool, claims.role, at});
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

void SignPod(const RecordKeys& keys, base::WallTime at, kube::Object& pod) {
  const std::string time = std::to_string(MillisecondsOf(at));
  const std::string signature = time + "." + SignaturesOf(keys, ClaimsOf(pod), time, pod).front();
  for (Json& container : pod.mutable_json()["spec"]["containers"]) {
    if (container.value("name", "") == kWorkerContainer) SetVariable(kSignatureVariable, signature, container);
  }
}

std::optional<base::WallTime> SignedAt(const RecordKeys& keys, const kube::Object& pod) {
  const PodClaims claims = ClaimsOf(pod);
  const size_t dot = claims.signature.find('.');
  if (dot == std::string::npos) return std::nullopt;
  const std::string time = claims.signature.substr(0, dot);
  const std::string digest = claims.signature.substr(dot + 1);
  int64_t milliseconds = 0;
  const auto [end, error] = std::from_chars(time.data(), time.data() + time.size(), milliseconds);
  if (error != std::errc() || end != time.data() + time.size()) return std::nullopt;
  bool good = false;
  for (const std::string& each : SignaturesOf(keys, claims, time, pod)) good = base::SameSecret(digest, each) || good;
  if (!good) return std::nullopt;
  return base::WallTime(base::milliseconds(milliseconds));
}

bool IsInTime(base::WallTime signed_at, const kube::Object& pod) {
  const auto created = base::ParseTime(pod.String("/metadata/creationTimestamp"));  // whole seconds
  return created.ok() && *created + base::seconds(1) + kSignedAhead >= signed_at && *created <= signed_at + kSignedFor;
}

}  // namespace medley::ops
