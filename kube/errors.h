// Converts the API's metav1.Status to absl::Status. HTTP code, reason and Retry-After are kept as payloads.
//
//   409 Conflict -> Aborted, 409 AlreadyExists -> AlreadyExists, 404 -> NotFound, 410 -> OutOfRange,
//   422 -> InvalidArgument, 403 -> PermissionDenied, 401 -> Unauthenticated, 429 -> ResourceExhausted,
//   5xx -> Unavailable (504: DeadlineExceeded), no connection -> Unavailable. All functions are pure.
#pragma once

#include <absl/status/status.h>

#include <chrono>
#include <optional>
#include <string>

#include "kube/object.h"

namespace medley::kube {

// The code of a response of the API, by the table above. `reason` distinguishes the two kinds of 409.
absl::StatusCode StatusCodeOf(int http_code, std::string_view reason);
// `body` is a metav1.Status, or text that becomes the message.
absl::Status ErrorFromHttp(int http_code, std::string_view body, std::string_view what,
                           std::optional<std::chrono::seconds> retry_after = std::nullopt);
// Converts the object of a watch's ERROR event.
absl::Status ErrorFromStatusObject(const Object& status_object, std::string_view what);
// No process listens at the address.
absl::Status ConnectionRefused(std::string_view what);
// A watch broke in the middle of its stream. The caller continues from the last resourceVersion.
absl::Status StreamCut(std::string_view what);

int HttpCode(const absl::Status& status);        // 0 if the error did not come from a server
std::string Reason(const absl::Status& status);  // "Conflict", "AlreadyExists", "Expired", ...
std::optional<std::chrono::seconds> RetryAfter(const absl::Status& status);
// Also declared here, so that unqualified calls are not ambiguous with absl's functions.
using absl::IsAlreadyExists;
using absl::IsNotFound;
bool IsConflict(const absl::Status& status);
bool IsGone(const absl::Status& status);  // 410: Expired or Gone
bool IsTooLargeResourceVersion(const absl::Status& status);
bool IsTooManyRequests(const absl::Status& status);
bool IsConnectionRefused(const absl::Status& status);
bool IsStreamCut(const absl::Status& status);

}  // namespace medley::kube
