#include "common/aws/sigv4.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

#include "common/base/status.h"
#include "common/base/url.h"

namespace medley::aws {
namespace {

std::string Hmac(std::string_view key, std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> out{};
  unsigned int size = 0;
  const unsigned char* done =
      HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(bytes.data()),
           bytes.size(), out.data(), &size);
  MEDLEY_CHECK(done != nullptr, "HMAC-SHA256 failed");
  return std::string(reinterpret_cast<const char*>(out.data()), size);
}

// Formats a time as "20150830T123600Z".
std::string Stamp(base::WallTime now) {
  std::string text = base::FormatTime(now);  // 2015-08-30T12:36:00Z
  std::erase_if(text, [](char c) { return c == '-' || c == ':'; });
  return text;
}

// Removes leading and trailing spaces and replaces runs of spaces by one.
std::string CanonicalValue(const std::string& value) {
  std::string out;
  for (const char c : value) {
    if (c == ' ' && (out.empty() || out.back() == ' ')) continue;
    out += c;
  }
  if (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

std::string Lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); });
  return text;
}

std::string CanonicalQuery(const SignableRequest& request) {
  std::vector<std::pair<std::string, std::string>> query;
  for (const auto& [name, value] : request.query) query.emplace_back(base::UrlEncode(name), base::UrlEncode(value));
  std::sort(query.begin(), query.end());
  std::string out;
  for (const auto& [name, value] : query) out += (out.empty() ? "" : "&") + name + "=" + value;
  return out;
}

}  // namespace

std::string Hex(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return out;
}

std::string Sha256Hex(std::string_view bytes) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> out{};
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), out.data());
  return Hex(std::string_view(reinterpret_cast<const char*>(out.data()), out.size()));
}

std::string SigV4SigningKey(std::string_view secret, std::string_view date, std::string_view region,
                            std::string_view service) {
  return Hmac(Hmac(Hmac(Hmac("AWS4" + std::string(secret), date), region), service), "aws4_request");
}

SigV4 SignV4(const SignableRequest& request, const Keys& keys, const std::string& region, const std::string& service,
             base::WallTime now) {
  SigV4 out;
  const std::string stamp = Stamp(now);
  const std::string date = stamp.substr(0, 8);
  out.headers.emplace_back("X-Amz-Date", stamp);
  if (!request.payload_hash.empty()) out.headers.emplace_back("X-Amz-Content-Sha256", request.payload_hash);
  if (!keys.session_token.empty()) out.headers.emplace_back("X-Amz-Security-Token", keys.session_token);

  std::map<std::string, std::string> signed_headers = {{"host", request.host}};
  for (const auto& [name, value] : request.headers) signed_headers[Lower(name)] = CanonicalValue(value);
  for (const auto& [name, value] : out.headers) signed_headers[Lower(name)] = CanonicalValue(value);
  std::string lines, names;
  for (const auto& [name, value] : signed_headers) {
    lines += name + ":" + value + "\n";
    names += (names.empty() ? "" : ";") + name;
  }
  out.canonical_request = request.method + "\n" + request.path + "\n" + CanonicalQuery(request) + "\n" + lines + "\n" +
                          names + "\n" +
                          (request.payload_hash.empty() ? Sha256Hex(request.body) : request.payload_hash);
  const std::string scope = date + "/" + region + "/" + service + "/aws4_request";
  out.string_to_sign = "AWS4-HMAC-SHA256\n" + stamp + "\n" + scope + "\n" + Sha256Hex(out.canonical_request);
  out.signature = Hex(Hmac(SigV4SigningKey(keys.secret_access_key, date, region, service), out.string_to_sign));
  out.headers.emplace_back("Authorization",
                           fmt::format("AWS4-HMAC-SHA256 Credential={}/{}, SignedHeaders={}, Signature={}",
                                       keys.access_key_id, scope, names, out.signature));
  return out;
}

}  // namespace medley::aws
