// Makes HTTP responses, also from a Status. Pure, thread-safe.
#pragma once

#include <absl/status/status.h>

#include <string>
#include <string_view>

#include "common/http_server/message.h"

namespace medley::sched {

inline constexpr char kJsonType[] = "application/json";

http_server::HttpResponse TextAnswer(int code, std::string body, std::string type = "text/plain; charset=utf-8");

// A body such as {"code": "INVALID_ARGUMENT", "message": "...", "field": "model.layers[0].name"}; `field` is empty if
// the error names no field. `code` 0 means HttpCode of the status. 429 and 503 include Retry-After.
http_server::HttpResponse ErrorAnswer(const absl::Status& status, int code = 0);
http_server::HttpResponse ErrorAnswer(const absl::Status& status, int code, std::string_view field);

// The HTTP code for a gRPC code.
int HttpCode(absl::StatusCode code);

}  // namespace medley::sched
