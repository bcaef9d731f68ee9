// Where an object lies: s3://bucket/key, gs://bucket/key or https://host/path. Plain values; pure.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>

namespace medley::object_store {

enum class Scheme { kS3, kGs, kHttps };

struct Location {
  Scheme scheme = Scheme::kS3;
  std::string bucket;  // kHttps: the host, with the port if the URL has one
  std::string key;     // not encoded, without a leading "/"; kHttps: path and query as in the URL
  bool operator==(const Location&) const = default;
};

// Whether the text begins with s3://, gs:// or https://.
bool IsRemote(std::string_view uri);

// A key may be empty or end in "/": it then means all objects below. Errors: InvalidArgument naming the URI without its
// query: another scheme, a name that no bucket has, a key of more than 1024 bytes or with a part "." or ".." or a
// control character, a user or a fragment in a URL.
absl::StatusOr<Location> ParseLocation(std::string_view uri);

// As it was written, without the query of a URL, which may hold a signature.
std::string NameOf(const Location& location);

}  // namespace medley::object_store
