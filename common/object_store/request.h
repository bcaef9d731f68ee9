// Which request does what in an object store, and its signature. Pure.
#pragma once

#include <absl/status/statusor.h>

#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/base/url.h"
#include "common/http_client/connection.h"
#include "common/object_store/location.h"
#include "common/object_store/settings.h"

namespace medley::object_store {

struct RequestParts {
  std::string method = "GET";
  base::QueryFields query;
  http_client::Headers headers;
  std::optional<std::string> body;
};

// The request without limits of time and size. Requests of https:// carry no credentials and are the only ones that
// follow redirects. Errors: InvalidArgument (a bucket whose name no host can have, with virtual hosts).
absl::StatusOr<http_client::Request> MakeRequest(const Settings& settings, const Location& at,
                                                 const RequestParts& parts, base::WallTime now);

// "x-amz-", or "x-goog-" where an OAuth token is sent instead of a signature of AWS.
std::string MetaPrefix(const Settings& settings, const Location& at);

// Which variables hold the keys of this location, for sentences.
std::string KeysOf(const Location& at);

}  // namespace medley::object_store
