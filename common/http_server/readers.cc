#include "common/http_server/readers.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "common/base/hex.h"
#include "common/base/secrets.h"
#include "common/base/status.h"

namespace medley::http_server {
namespace {

constexpr std::string_view kBearerScheme = "bearer ";
constexpr size_t kLeastToken = 16;
constexpr size_t kDigestDigits = 64;

// As hexadecimal digits.
std::string Sha256Of(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  MEDLEY_CHECK(EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(), nullptr) == 1,
               "SHA-256 failed");
  return base::HexOf({reinterpret_cast<const char*>(digest.data()), size});
}

// Calls `each` with every part of `text` between two of `separator`.
template <typename Each>
void Split(std::string_view text, char separator, Each each) {
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    each(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

bool HasBearerScheme(std::string_view value) {
  return value.size() > kBearerScheme.size() &&
         std::equal(kBearerScheme.begin(), kBearerScheme.end(), value.begin(),
                    [](char want, char is) { return want == std::tolower(static_cast<unsigned char>(is)); });
}

}  // namespace

absl::StatusOr<Readers> Readers::OfTokens(std::string_view lines) {
  Readers readers;
  absl::Status wrong;
  int number = 0;
  Split(lines, '\n', [&](std::string_view token) {
    ++number;
    if (!token.empty() && token.back() == '\r') token.remove_suffix(1);
    if (token.empty()) return;
    const bool visible = std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c <= '~'; });
    if (token.size() < kLeastToken || !visible) {
      wrong = base::InvalidArgument("line {}: a token must have at least {} visible ASCII characters and no spaces",
                                    number, kLeastToken);
    }
    readers.digests_.push_back(Sha256Of(token));
  });
  MEDLEY_RETURN_IF_ERROR(wrong);
  if (readers.digests_.empty()) return base::InvalidArgument("contains no token");
  return readers;
}

absl::StatusOr<Readers> Readers::OfDigests(std::string_view list) {
  Readers readers;
  Split(list, ',', [&](std::string_view digest) { readers.digests_.emplace_back(digest); });
  const bool good = std::all_of(readers.digests_.begin(), readers.digests_.end(), [](const std::string& digest) {
    return digest.size() == kDigestDigits && digest.find_first_not_of("0123456789abcdef") == std::string::npos;
  });
  if (!good)
    return base::InvalidArgument("must be SHA-256 digests of {} hexadecimal digits, with commas between them",
                                 kDigestDigits);
  return readers;
}

bool Readers::Allow(const HttpRequest& request) const {
  if (digests_.empty()) return true;
  const std::string_view value = request.authorization;
  if (!HasBearerScheme(value)) return false;
  const std::string shown = Sha256Of(value.substr(kBearerScheme.size()));
  bool allowed = false;
  for (const std::string& digest : digests_) allowed = base::SameSecret(shown, digest) || allowed;
  return allowed;
}

std::string Readers::digests() const {
  std::string list;
  for (const std::string& digest : digests_) list += (list.empty() ? "" : ",") + digest;
  return list;
}

HttpResponse Readers::Refusal() {
  return {.code = 401,
          .content_type = "text/plain",
          .headers = {{"WWW-Authenticate", "Bearer"}},
          .body = "send the token: authorization: Bearer TOKEN\n"};
}

}  // namespace medley::http_server
