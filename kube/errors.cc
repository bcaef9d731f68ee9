#include "kube/errors.h"

#include <absl/strings/cord.h>
#include <absl/strings/string_view.h>

#include <charconv>

#include "common/base/status.h"

namespace medley::kube {
namespace {

constexpr const char* kHttpCode = "medley.kube/http-code";
constexpr const char* kReason = "medley.kube/reason";
constexpr const char* kRetryAfter = "medley.kube/retry-after-seconds";
constexpr const char* kTooLarge = "medley.kube/too-large-resource-version";
constexpr const char* kRefused = "medley.kube/connection-refused";
constexpr const char* kCut = "medley.kube/stream-cut";

// The reason that the API server gives for a code. Used when the body is not a Status.
std::string DefaultReason(int http_code) {
  switch (http_code) {
    case 400:
      return "BadRequest";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "NotFound";
    case 405:
      return "MethodNotAllowed";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 422:
      return "Invalid";
    case 429:
      return "TooManyRequests";
    case 500:
      return "InternalError";
    case 503:
      return "ServiceUnavailable";
    case 504:
      return "Timeout";
    default:
      return "";
  }
}

void SetPayload(absl::Status& status, const char* type, std::string_view value) {
  status.SetPayload(type, absl::Cord(absl::string_view(value.data(), value.size())));
}

std::optional<std::string> Payload(const absl::Status& status, const char* type) {
  const auto cord = status.GetPayload(type);
  if (!cord) return std::nullopt;
  return std::string(*cord);
}

std::optional<int64_t> IntPayload(const absl::Status& status, const char* type) {
  const auto text = Payload(status, type);
  int64_t value = 0;
  if (!text) return std::nullopt;
  if (std::from_chars(text->data(), text->data() + text->size(), value).ec != std::errc()) {
    return std::nullopt;
  }
  return value;
}

bool SaysTooLarge(const Object& body) {
  constexpr std::string_view kText = "Too large resource version";
  const Json& causes = body.At("/details/causes");
  if (causes.is_array()) {
    for (const Json& cause : causes) {
      const Object view(cause);
      if (view.String("/reason") == "ResourceVersionTooLarge") return true;
      if (view.String("/message") == kText) return true;
    }
  }
  return body.String("/message").find(kText) != std::string::npos;
}

absl::Status Make(int http_code, const Object& body, std::string message, std::string_view what,
                  std::optional<std::chrono::seconds> retry_after) {
  std::string reason = body.String("/reason");
  if (reason.empty()) reason = DefaultReason(http_code);
  absl::Status status =
      base::MakeStatus(StatusCodeOf(http_code, reason), fmt::format("{}: {} ({})", what, message, http_code));
  SetPayload(status, kHttpCode, std::to_string(http_code));
  if (!reason.empty()) SetPayload(status, kReason, reason);
  if (!retry_after) {
    const Json& seconds = body.At("/details/retryAfterSeconds");
    if (seconds.is_number_integer() && seconds.get<int64_t>() > 0) {
      retry_after = std::chrono::seconds(seconds.get<int64_t>());
    }
  }
  if (retry_after) SetPayload(status, kRetryAfter, std::to_string(retry_after->count()));
  if (SaysTooLarge(body)) SetPayload(status, kTooLarge, "1");
  return status;
}

}  // namespace

absl::StatusCode StatusCodeOf(int http_code, std::string_view reason) {
  switch (http_code) {
    case 401:
      return absl::StatusCode::kUnauthenticated;
    case 403:
      return absl::StatusCode::kPermissionDenied;
    case 404:
      return absl::StatusCode::kNotFound;
    case 405:
      return absl::StatusCode::kUnimplemented;
    case 408:
    case 504:
      return absl::StatusCode::kDeadlineExceeded;
    case 409:
      return reason == "AlreadyExists" ? absl::StatusCode::kAlreadyExists : absl::StatusCode::kAborted;
    case 410:
      return absl::StatusCode::kOutOfRange;
    case 412:
      return absl::StatusCode::kFailedPrecondition;
    case 429:
      return absl::StatusCode::kResourceExhausted;
    default:
      break;
  }
  if (http_code >= 500) return absl::StatusCode::kUnavailable;
  if (http_code >= 400) return absl::StatusCode::kInvalidArgument;
  return absl::StatusCode::kUnknown;
}

absl::Status ErrorFromHttp(int http_code, std::string_view body, std::string_view what,
                           std::optional<std::chrono::seconds> retry_after) {
  Json json = Json::parse(body, nullptr, false);
  Object object(json.is_object() ? std::move(json) : Json::object());
  std::string message = object.kind() == "Status" ? object.String("/message") : "";
  if (message.empty()) message = std::string(body.substr(0, 512));
  if (message.empty()) message = "no body";
  if (object.kind() != "Status") object = Object();
  return Make(http_code, object, std::move(message), what, retry_after);
}

absl::Status ErrorFromStatusObject(const Object& status_object, std::string_view what) {
  const Json& code = status_object.At("/code");
  std::string message = status_object.String("/message");
  if (message.empty()) message = Dump(status_object.json());
  int http_code = 500;
  if (code.is_number_integer()) {
    const int64_t value = code.get<int64_t>();
    if (value >= 400 && value <= 599) http_code = static_cast<int>(value);
  }
  return Make(http_code, status_object, message.substr(0, 512), what, std::nullopt);
}

absl::Status ConnectionRefused(std::string_view what) {
  absl::Status status = base::Unavailable("{}: connection refused", what);
  SetPayload(status, kRefused, "1");
  return status;
}

absl::Status StreamCut(std::string_view what) {
  absl::Status status = base::Unavailable("{}: the connection broke in the middle of the stream", what);
  SetPayload(status, kCut, "1");
  return status;
}

int HttpCode(const absl::Status& status) { return static_cast<int>(IntPayload(status, kHttpCode).value_or(0)); }

std::string Reason(const absl::Status& status) { return Payload(status, kReason).value_or(""); }

std::optional<std::chrono::seconds> RetryAfter(const absl::Status& status) {
  const auto value = IntPayload(status, kRetryAfter);
  if (!value) return std::nullopt;
  return std::chrono::seconds(*value);
}

bool IsConflict(const absl::Status& status) { return HttpCode(status) == 409 && Reason(status) != "AlreadyExists"; }
bool IsGone(const absl::Status& status) {
  return HttpCode(status) == 410 || Reason(status) == "Expired" || Reason(status) == "Gone";
}
bool IsTooLargeResourceVersion(const absl::Status& status) { return Payload(status, kTooLarge).has_value(); }
bool IsTooManyRequests(const absl::Status& status) { return HttpCode(status) == 429; }
bool IsConnectionRefused(const absl::Status& status) { return Payload(status, kRefused).has_value(); }
bool IsStreamCut(const absl::Status& status) { return Payload(status, kCut).has_value(); }

}  // namespace medley::kube
