// Decides what an exchange with an object store means: done, worth another try, or an error for the user. Pure.
#pragma once

#include <absl/status/status.h>

#include <chrono>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/http_client/connection.h"

namespace medley::object_store {

struct Verdict {
  absl::Status status;  // OK: done
  bool retry = false;   // an error that may pass
  // What the server asks callers to wait before the next try, at most kMostRetryAfter.
  std::optional<base::seconds> wait;
};

inline constexpr base::seconds kMostRetryAfter{30};

// `what` begins the sentence: "reading s3://bucket/key". Done are 200, 201, 204 and 206. A retry: no connection, one
// that broke, half a body, silence; 408, 429, 500, 502, 503, 504, a request that conflicts with another one (409), and
// a 200 whose body says InternalError or SlowDown. Errors: NotFound (bucket, object); PermissionDenied (keys are wrong,
// expired or lack a right, a clock that is wrong, and redirects: `says` which keys to look at); FailedPrecondition
// (another region, the object changed: 412; TLS); InvalidArgument (all else that the server refuses); ResourceExhausted
// (an answer that is too large, a store that is full).
// `content`: the body of a success is that of an object, in which nothing is looked for.
Verdict Judge(const http_client::Result& result, const std::string& what, const std::string& keys, bool content,
              const base::Clock& clock);

}  // namespace medley::object_store
