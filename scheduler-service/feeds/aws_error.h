// Converts error responses of AWS's query APIs. Pure.
#pragma once

#include <absl/status/status.h>

#include <string>

#include "scheduler-service/feeds/http_fetcher.h"

namespace medley::sched {

// OK for HTTP 200. Otherwise maps AWS's error code, and the message includes AWS's code and message:
//   throttling                                          ResourceExhausted
//   UnauthorizedOperation, AccessDenied, OptInRequired  PermissionDenied
//   wrong or expired credentials, wrong clock           Unauthenticated
//   an unknown code or an unreadable body               as StatusOfReply
absl::Status StatusOfAwsReply(const FetchReply& reply, const std::string& what);

}  // namespace medley::sched
