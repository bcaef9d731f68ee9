#include "common/object_store/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "common/base/status.h"
#include "common/object_store/wire.h"

namespace medley::object_store {
namespace {

constexpr int kPassingCodes[] = {408, 429, 500, 502, 503, 504};
// Codes of bodies that arrive with a 200, after the server has kept the connection open with blanks, or with a 400.
constexpr std::string_view kPassingErrors[] = {"InternalError",  "SlowDown",         "ServiceUnavailable",
                                               "RequestTimeout", "OperationAborted", "ConditionalRequestConflict"};
// The store has no room: it may have some later, but not within the attempts of one request.
constexpr std::string_view kFullErrors[] = {"InsufficientStorage", "XMinioStorageFull", "QuotaExceeded",
                                            "XMinioAdminBucketQuotaExceeded"};
constexpr int kFullCode = 507;
constexpr std::string_view kKeyErrors[] = {"InvalidAccessKeyId",   "SignatureDoesNotMatch",
                                           "ExpiredToken",         "InvalidToken",
                                           "TokenRefreshRequired", "AuthorizationHeaderMalformed"};

template <typename Range, typename Value>
bool Has(const Range& range, const Value& value) {
  return std::ranges::find(range, value) != std::end(range);
}

std::string Because(int code, const ErrorText& text) {
  if (text.code.empty()) return fmt::format("HTTP {}", code);
  return text.message.empty() ? fmt::format("{} (HTTP {})", text.code, code)
                              : fmt::format("{}: {} (HTTP {})", text.code, text.message, code);
}

absl::Status Refused(const http_client::Response& response, const ErrorText& text, const std::string& what,
                     const std::string& keys) {
  const int code = response.code;
  const std::string why = Because(code, text);
  if (code == 404) {
    if (text.code == "NoSuchBucket") return base::NotFound("{}: the bucket does not exist", what);
    return base::NotFound("{}: it does not exist", what);
  }
  if (code == kFullCode || Has(kFullErrors, text.code)) {
    return base::ResourceExhausted("{}: the store has no room: {}", what, why);
  }
  if (code == 412) return base::FailedPrecondition("{}: the object changed meanwhile", what);
  const std::string region = response.Header("x-amz-bucket-region");
  const bool elsewhere = text.code == "PermanentRedirect" || text.code == "AuthorizationHeaderMalformed" ||
                         (code >= 300 && code < 400 && !region.empty());
  if (elsewhere && !region.empty()) {
    return base::FailedPrecondition("{}: the bucket is in the region '{}': set that as the region", what, region);
  }
  if (code >= 300 && code < 400) {
    return base::PermissionDenied(
        "{}: the server redirects to another address, which is not followed: set the "
        "endpoint and the region of the bucket ({})",
        what, why);
  }
  if (text.code == "RequestTimeTooSkewed") {
    return base::PermissionDenied("{}: the clock of this machine is wrong: {}", what, why);
  }
  if (code == 401 || code == 403 || Has(kKeyErrors, text.code)) {
    return base::PermissionDenied("{}: access denied: check {}: {}", what, keys, why);
  }
  return base::InvalidArgument("{}: the server refuses the request: {}", what, why);
}

}  // namespace

Verdict Judge(const http_client::Result& result, const std::string& what, const std::string& keys, bool content,
              const base::Clock& clock) {
  if (!result.status.ok()) {
    const bool passes = absl::IsUnavailable(result.status) || absl::IsDeadlineExceeded(result.status);
    return {.status = result.status, .retry = passes, .wait = std::nullopt};
  }
  const http_client::Response& response = result.response;
  const bool good = response.code == 200 || response.code == 201 || response.code == 204 || response.code == 206;
  if (good && content) return {};
  const ErrorText text = response.body.starts_with('<') ? ParseError(response.body) : ErrorText();
  if (good && text.code.empty()) return {};
  if (Has(kPassingCodes, response.code) || Has(kPassingErrors, text.code)) {
    return {.status = base::Unavailable("{}: {}", what, Because(response.code, text)),
            .retry = true,
            .wait = response.RetryAfter(clock, kMostRetryAfter)};
  }
  return {.status = Refused(response, text, what, keys), .retry = false, .wait = std::nullopt};
}

}  // namespace medley::object_store
