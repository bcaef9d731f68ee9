#include "common/object_store/location.h"

#include <algorithm>

#include "common/base/status.h"

namespace medley::object_store {
namespace {

constexpr size_t kLongestKey = 1024;  // of S3 and of Google Cloud Storage
constexpr size_t kLongestUrl = 8192;

struct SchemeText {
  Scheme scheme;
  std::string_view text;
};
constexpr SchemeText kSchemes[] = {{Scheme::kS3, "s3://"}, {Scheme::kGs, "gs://"}, {Scheme::kHttps, "https://"}};

bool IsBucketCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_';
}

bool IsControl(char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; }

// A client, or a proxy on the way, would take these parts for a way through folders.
bool HasDots(std::string_view path) {
  while (true) {
    const size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (part == "." || part == "..") return true;
    if (slash == std::string_view::npos) return false;
    path.remove_prefix(slash + 1);
  }
}

absl::Status CheckHttps(const Location& location, const std::string& name) {
  const auto allowed = [](char c) { return IsBucketCharacter(c) || c == ':' || c == '[' || c == ']'; };
  if (!std::ranges::all_of(location.bucket, allowed)) return base::InvalidArgument("{}: not a host", name);
  if (location.key.size() > kLongestUrl) return base::InvalidArgument("{}: longer than {} bytes", name, kLongestUrl);
  const auto bad = [](char c) { return IsControl(c) || c == ' ' || c == '#'; };
  if (std::ranges::any_of(location.key, bad)) {
    return base::InvalidArgument("{}: a URL has no spaces, control characters or '#'", name);
  }
  return absl::OkStatus();
}

}  // namespace

bool IsRemote(std::string_view uri) {
  return std::ranges::any_of(kSchemes, [&](const SchemeText& each) { return uri.starts_with(each.text); });
}

absl::StatusOr<Location> ParseLocation(std::string_view uri) {
  Location location;
  const auto* const scheme =
      std::ranges::find_if(kSchemes, [&](const SchemeText& each) { return uri.starts_with(each.text); });
  if (scheme == std::end(kSchemes)) {
    return base::InvalidArgument("'{}' does not begin with s3://, gs:// or https://", std::string(uri));
  }
  location.scheme = scheme->scheme;
  std::string_view rest = uri.substr(scheme->text.size());
  const size_t slash = rest.find('/');
  location.bucket = std::string(rest.substr(0, slash));
  if (slash != std::string_view::npos) location.key = std::string(rest.substr(slash + 1));
  const std::string name = NameOf(location);
  if (location.scheme == Scheme::kHttps) {
    if (location.bucket.empty()) return base::InvalidArgument("{}: no host", name);
    MEDLEY_RETURN_IF_ERROR(CheckHttps(location, name));
    return location;
  }
  if (location.bucket.size() < 3 || location.bucket.size() > 255 ||
      !std::ranges::all_of(location.bucket, IsBucketCharacter) || location.bucket.find("..") != std::string::npos) {
    return base::InvalidArgument("{}: '{}' is not the name of a bucket", name, location.bucket);
  }
  if (location.key.size() > kLongestKey) return base::InvalidArgument("{}: longer than {} bytes", name, kLongestKey);
  if (location.key.starts_with('/') || location.key.find("//") != std::string::npos || HasDots(location.key)) {
    return base::InvalidArgument("{}: a part of the key is empty, '.' or '..'", name);
  }
  if (std::ranges::any_of(location.key, IsControl)) {
    return base::InvalidArgument("{}: the key has a control character", name);
  }
  return location;
}

std::string NameOf(const Location& location) {
  std::string name;
  for (const SchemeText& each : kSchemes) {
    if (each.scheme == location.scheme) name = each.text;
  }
  name += location.bucket + "/";
  const size_t query = location.scheme == Scheme::kHttps ? location.key.find('?') : std::string::npos;
  return name + location.key.substr(0, query);
}

}  // namespace medley::object_store
