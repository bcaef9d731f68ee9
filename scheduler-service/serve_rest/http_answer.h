// An answer over HTTP, and how a Status becomes one. Pure, thread-safe.
#pragma once

#include <absl/status/status.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace medley::sched {

inline constexpr char kJsonType[] = "application/json";

struct HttpAnswer {
  int code = 200;
  std::shared_ptr<const std::string> body;
  std::string type = kJsonType;
  std::vector<std::pair<std::string, std::string>> headers;
  bool close = false;  // the connection is of no use any more
};

HttpAnswer TextAnswer(int code, std::string body, std::string type = "text/plain; charset=utf-8");

// {"code": "INVALID_ARGUMENT", "message": "...", "field": "model.layers[0].name"}; `field` is empty where the error
// names none. ResourceExhausted is 429 with Retry-After unless `code` says otherwise (413).
HttpAnswer ErrorAnswer(const absl::Status& status, int code = 0);
HttpAnswer ErrorAnswer(const absl::Status& status, int code, std::string_view field);

// The HTTP code of a gRPC code.
int HttpCode(absl::StatusCode code);

}  // namespace medley::sched
