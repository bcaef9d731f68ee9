#include "operator/app/record_secret.h"

#include <absl/strings/escaping.h>

#include <string>
#include <utility>
#include <vector>

#include "common/base/log.h"
#include "common/base/secrets.h"
#include "common/base/status.h"
#include "kube/errors.h"

namespace medley::ops {
namespace {

constexpr char kKeyEntry[] = "key";
constexpr char kPreviousEntry[] = "previous";
constexpr size_t kShortestKey = 32;  // bytes, as many as HMAC-SHA256 gives
constexpr base::nanoseconds kSecretPatience = std::chrono::minutes(2);
constexpr base::nanoseconds kSecretRetry = base::seconds(1);

std::string EntryOf(const kube::Object& secret, const std::string& name) {
  std::string value;
  return absl::Base64Unescape(secret.String("/data/" + name), &value) ? value : "";
}

absl::StatusOr<RecordKeys> KeysOf(const kube::Object& secret) {
  std::vector<std::string> keys;
  for (const char* name : {kKeyEntry, kPreviousEntry}) {
    if (name == kPreviousEntry && !secret.At("/data").contains(name)) continue;
    keys.push_back(EntryOf(secret, name));
    if (keys.back().size() >= kShortestKey) continue;
    return base::FailedPrecondition(
        "entry '{}' of Secret {} has {} bytes, and a key needs {}: restore it, or delete the Secret, after which all "
        "jobs are planned and measured again",
        name, secret.key().ToString(), keys.back().size(), kShortestKey);
  }
  return RecordKeys(std::move(keys));
}

kube::Object NewSecret(const kube::Key& key) {
  kube::Object secret(kube::resources::Secrets(), key);
  secret.mutable_json()["type"] = "Opaque";
  secret.mutable_json()["data"] = {{kKeyEntry, absl::Base64Escape(base::RandomToken())}};
  return secret;
}

absl::StatusOr<kube::Object> ReadOrCreate(kube::Client& client, const kube::Key& key) {
  auto secret = client.Get(kube::resources::Secrets(), key);
  if (!kube::IsNotFound(secret.status())) return secret;
  secret = client.Create(kube::resources::Secrets(), NewSecret(key));
  if (kube::IsAlreadyExists(secret.status())) return client.Get(kube::resources::Secrets(), key);  // another replica
  if (secret.ok()) base::log::Info("created the Secret with the key that signs records", {{"secret", key.ToString()}});
  return secret;
}

// The API server may answer later.
bool IsTemporary(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) || absl::IsResourceExhausted(status) ||
         absl::IsInternal(status);
}

}  // namespace

absl::StatusOr<RecordKeys> EnsureRecordKeys(kube::Client& client, const kube::Key& secret, base::Clock& clock,
                                            std::stop_token stop) {
  const base::SteadyTime until = clock.Steady() + kSecretPatience;
  while (true) {
    const auto found = ReadOrCreate(client, secret);
    if (found.ok()) return KeysOf(*found);
    if (!IsTemporary(found.status()) || clock.Steady() >= until) {
      return base::Annotate(found.status(), "read or create Secret " + secret.ToString() +
                                                ", whose key signs records: the operator needs the verbs get and "
                                                "create for Secrets of its own namespace");
    }
    base::log::Warn("the key that signs records cannot be read; trying again",
                    {{"error", base::ToString(found.status())}});
    if (!clock.SleepUntil(clock.Steady() + kSecretRetry, stop)) {
      return base::Cancelled("read Secret {}: stopped", secret.ToString());
    }
  }
}

}  // namespace medley::ops
