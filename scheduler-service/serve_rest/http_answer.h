// An HTTP response, and the conversion of a Status to one. Pure, thread-safe.
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
  bool close = false;  // close the connection after the response
};

HttpAnswer TextAnswer(int code, std::string body, std::string type = "text/plain; charset=utf-8");

// A body such as {"code": "INVALID_ARGUMENT", "message": "...", "field": "model.layers[0].name"}; `field` is empty if
// the error names no field. `code` 0 means HttpCode of the status. 429 and 503 include Retry-After.
HttpAnswer ErrorAnswer(const absl::Status& status, int code = 0);
HttpAnswer ErrorAnswer(const absl::Status& status, int code, std::string_view field);

// The HTTP code for a gRPC code.
int HttpCode(absl::StatusCode code);

}  // namespace medley::sched
