#include "common/object_store/request.h"

#include <algorithm>
#include <utility>

#include "common/base/status.h"
#include "common/object_store/wire.h"

namespace medley::object_store {
namespace {

constexpr int kMostRedirects = 5;

struct Origin {
  std::string scheme;  // "https://"
  std::string host;
  std::string path;  // encoded
};

// A bucket in the name of the host must be one label, else no certificate matches.
bool IsLabel(const std::string& bucket) {
  return bucket.size() <= 63 && !bucket.starts_with('-') && !bucket.ends_with('-') &&
         std::ranges::all_of(bucket,
                             [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
}

Origin OriginOf(const Settings& settings, const Location& at) {
  const bool s3 = at.scheme == Scheme::kS3;
  std::string endpoint = s3 ? settings.endpoint : settings.gs_endpoint;
  if (endpoint.empty()) endpoint = "https://s3." + settings.region + ".amazonaws.com";
  const size_t host = endpoint.find("://") + 3;
  Origin origin{endpoint.substr(0, host), endpoint.substr(host), "/"};
  // Google's own host takes buckets in the path, so that is used for it.
  const bool in_path = !s3 || settings.path_style || !IsLabel(at.bucket);
  if (in_path) {
    origin.path += at.bucket + "/";
  } else {
    origin.host = at.bucket + "." + origin.host;
  }
  origin.path += EncodeKey(at.key);
  return origin;
}

}  // namespace

absl::StatusOr<http_client::Request> MakeRequest(const Settings& settings, const Location& at,
                                                 const RequestParts& parts, base::WallTime now) {
  http_client::Request request{.method = parts.method, .headers = parts.headers, .body = parts.body};
  if (at.scheme == Scheme::kHttps) {
    request.url = "https://" + at.bucket + "/" + at.key;
    request.max_redirects = kMostRedirects;
    return request;
  }
  const Origin origin = OriginOf(settings, at);
  request.url = origin.scheme + origin.host + origin.path;
  if (!parts.query.empty()) request.url += "?" + base::QueryEncode(parts.query);
  const bool s3 = at.scheme == Scheme::kS3;
  const aws::Keys& keys = s3 ? settings.keys : settings.gs_keys;
  if (!s3 && !settings.gs_token.empty()) {
    request.headers.emplace_back("Authorization", "Bearer " + settings.gs_token);
    return request;
  }
  if (keys.access_key_id.empty()) return request;
  aws::SignableRequest signable{.method = parts.method,
                                .host = origin.host,
                                .path = origin.path,
                                .query = parts.query,
                                .headers = {},
                                .body = "",
                                .payload_hash = aws::Sha256Hex(parts.body ? *parts.body : std::string())};
  for (const auto& [name, value] : parts.headers) {
    if (name.starts_with("x-amz-")) signable.headers.emplace_back(name, value);
  }
  const std::string region = s3 ? settings.region : "auto";
  for (auto& header : aws::SignV4(signable, keys, region, "s3", now).headers) {
    request.headers.push_back(std::move(header));
  }
  return request;
}

std::string MetaPrefix(const Settings& settings, const Location& at) {
  return at.scheme == Scheme::kGs && !settings.gs_token.empty() ? "x-goog-" : "x-amz-";
}

std::string KeysOf(const Location& at) {
  switch (at.scheme) {
    case Scheme::kS3:
      return "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and what they may do";
    case Scheme::kGs:
      return "GS_ACCESS_KEY_ID and GS_SECRET_ACCESS_KEY, or GS_OAUTH_TOKEN, and what they may do";
    case Scheme::kHttps:
      break;
  }
  return "whether the address is public";
}

}  // namespace medley::object_store
