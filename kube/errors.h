// The API's metav1.Status inside absl::Status: code mapped, HTTP code, reason and Retry-After kept as payload.
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

// `status_object`: the body, when it is a metav1.Status; else its text is the message.
absl::Status ErrorFromHttp(int http_code, std::string_view body, std::string_view what,
                           std::optional<std::chrono::seconds> retry_after = std::nullopt);
// From the object of a watch's ERROR event.
absl::Status ErrorFromStatusObject(const Object& status_object, std::string_view what);
// Nobody listens at the address.
absl::Status ConnectionRefused(std::string_view what);
// A watch that had begun ended in the middle: go on from the last resourceVersion.
absl::Status StreamCut(std::string_view what);

int HttpCode(const absl::Status& status);        // 0 when it came from no server
std::string Reason(const absl::Status& status);  // "Conflict", "AlreadyExists", "Expired", ...
std::optional<std::chrono::seconds> RetryAfter(const absl::Status& status);
// absl's own, so that calls without a namespace stay unambiguous.
using absl::IsAlreadyExists;
using absl::IsNotFound;
bool IsConflict(const absl::Status& status);
bool IsGone(const absl::Status& status);  // 410: Expired or Gone
bool IsTooLargeResourceVersion(const absl::Status& status);
bool IsTooManyRequests(const absl::Status& status);
bool IsConnectionRefused(const absl::Status& status);
bool IsStreamCut(const absl::Status& status);

}  // namespace medley::kube
