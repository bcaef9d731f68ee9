#include "operator/records/record_keys.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>
#include <string_view>
#include <utility>

#include "common/base/hex.h"
#include "common/base/secrets.h"
#include "common/base/status.h"

namespace medley::ops {
namespace {

constexpr std::string_view kVersion1 = "v1:";
constexpr size_t kDigestBytes = 32;

std::string_view NameOf(RecordKind kind) {
  switch (kind) {
    case RecordKind::kPlan:
      return "plan";
    case RecordKind::kProfile:
      return "profile";
    case RecordKind::kSpec:
      return "spec";
  }
  return "";
}

// JSON quotes each part, and sorts the fields of objects, so that no two records have the same text.
std::string SignedText(RecordKind kind, const std::string& owner_uid, const kube::Object& record) {
  const kube::Key key = record.key();
  return kube::Dump(
      kube::Json::array({"medley.dev/record", NameOf(kind), key.ns, key.name, owner_uid, record.At("/data")}));
}

// As hexadecimal digits.
std::string HmacOf(const std::string& key, const std::string& text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  const auto* made =
      HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), bytes, text.size(), digest.data(), &size);
  MEDLEY_CHECK(made != nullptr && size == kDigestBytes, "HMAC-SHA256 failed");
  return base::HexOf({reinterpret_cast<const char*>(digest.data()), size});
}

std::string SignatureOf(const std::string& key, const std::string& text) {
  return std::string(kVersion1) + HmacOf(key, text);
}

// One for the process, so that several operators in it believe one another.
const std::string& KeyOfThisProcess() {
  static const std::string key = base::RandomToken();
  return key;
}

}  // namespace

RecordKeys::RecordKeys() : RecordKeys(std::vector{KeyOfThisProcess()}) {}

RecordKeys::RecordKeys(std::vector<std::string> keys)
    : keys_(std::make_shared<const std::vector<std::string>>(std::move(keys))) {
  MEDLEY_CHECK(!keys_->empty(), "records need a key to be signed");
}

void RecordKeys::Sign(RecordKind kind, const std::string& owner_uid, kube::Object& record) const {
  record.SetAnnotation(kSignatureAnnotation, SignatureOf(keys_->front(), SignedText(kind, owner_uid, record)));
}

absl::Status RecordKeys::Check(RecordKind kind, const std::string& owner_uid, const kube::Object& record) const {
  const std::string shown = record.annotation(kSignatureAnnotation);
  const std::string name = record.key().name;
  if (shown.empty()) return base::PermissionDenied("ConfigMap {} has no signature of the operator", name);
  const std::string text = SignedText(kind, owner_uid, record);
  bool good = false;
  for (const std::string& key : *keys_) good = base::SameSecret(shown, SignatureOf(key, text)) || good;
  if (good) return absl::OkStatus();
  return base::PermissionDenied("ConfigMap {} was changed by another client: its signature is not the operator's",
                                name);
}

bool RecordKeys::IsCurrent(RecordKind kind, const std::string& owner_uid, const kube::Object& record) const {
  return base::SameSecret(record.annotation(kSignatureAnnotation),
                          SignatureOf(keys_->front(), SignedText(kind, owner_uid, record)));
}

std::vector<std::string> RecordKeys::Derive(const std::vector<std::string>& purpose) const {
  const std::string text = kube::Dump(kube::Json::array({"medley.dev/secret", purpose}));  // no record has this text
  std::vector<std::string> secrets;
  for (const std::string& key : *keys_) secrets.push_back(HmacOf(key, text));
  return secrets;
}

}  // namespace medley::ops
