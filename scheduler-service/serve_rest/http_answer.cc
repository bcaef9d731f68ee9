#include "scheduler-service/serve_rest/http_answer.h"

#include <nlohmann/json.hpp>

#include "common/base/status.h"
#include "scheduler-service/handlers/field_path.h"

namespace medley::sched {
namespace {

constexpr char kRetryAfterSeconds[] = "1";

}  // namespace

int HttpCode(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
      return 200;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
      return 400;
    case absl::StatusCode::kUnauthenticated:
      return 401;
    case absl::StatusCode::kPermissionDenied:
      return 403;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kAborted:
      return 409;
    case absl::StatusCode::kFailedPrecondition:
      return 412;
    case absl::StatusCode::kResourceExhausted:
      return 429;
    case absl::StatusCode::kCancelled:
      return 499;
    case absl::StatusCode::kUnimplemented:
      return 501;
    case absl::StatusCode::kUnavailable:
      return 503;
    case absl::StatusCode::kDeadlineExceeded:
      return 504;
    default:
      return 500;
  }
}

http_server::HttpResponse TextAnswer(int code, std::string body, std::string type) {
  return {.code = code, .content_type = std::move(type), .body = std::move(body)};
}

http_server::HttpResponse ErrorAnswer(const absl::Status& status, int code) {
  return ErrorAnswer(status, code, absl::IsInvalidArgument(status) ? FieldOf(base::Message(status)) : std::string());
}

http_server::HttpResponse ErrorAnswer(const absl::Status& status, int code, std::string_view field) {
  const nlohmann::json body = {{"code", std::string(absl::StatusCodeToString(status.code()))},
                               {"message", base::Message(status)},
                               {"field", std::string(field)}};
  // Messages quote text from the caller, which may be invalid UTF-8.
  http_server::HttpResponse answer =
      TextAnswer(code == 0 ? HttpCode(status.code()) : code,
                 body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), kJsonType);
  if (answer.code == 429 || answer.code == 503) answer.headers.emplace_back("Retry-After", kRetryAfterSeconds);
  if (answer.code == 401) answer.headers.emplace_back("WWW-Authenticate", "Bearer");
  return answer;
}

}  // namespace medley::sched
