// Who may read a page, such as /metrics: callers that send one of some tokens ("authorization: Bearer TOKEN"), or
// everybody.
//
// A server needs only the SHA-256 of each token, from which nobody finds the token, since tokens are random. So the
// digests may be where others read them, as in the environment of a pod, and digests are what is compared, in constant
// time. Immutable, thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>
#include <vector>

#include "common/http_server/message.h"

namespace medley::http_server {

class Readers {
 public:
  // Everybody.
  Readers() = default;
  // One token a line; all are valid at the same time, so that they can be rotated. Errors: InvalidArgument: no token,
  // or one of fewer than 16 characters or with one that is not visible ASCII. A message has no part of a token.
  static absl::StatusOr<Readers> OfTokens(std::string_view lines);
  // What `digests` of another returned; "": everybody. Errors: InvalidArgument.
  static absl::StatusOr<Readers> OfDigests(std::string_view list);

  bool Allow(const HttpRequest& request) const;
  // 64 hexadecimal digits each, with commas between them.
  std::string digests() const;
  // To who is not allowed: 401.
  static HttpResponse Refusal();

 private:
  std::vector<std::string> digests_;
};

}  // namespace medley::http_server
