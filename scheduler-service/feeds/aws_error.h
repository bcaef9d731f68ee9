// Error answers of AWS's query APIs. Pure.
#pragma once

#include <absl/status/status.h>

#include <string>

#include "scheduler-service/feeds/http_fetcher.h"

namespace medley::sched {

// OK for 200. Else by AWS's own code: throttling: ResourceExhausted; UnauthorizedOperation,
// AccessDenied, OptInRequired: PermissionDenied; credentials that are wrong, expired or signed with
// a wrong clock: Unauthenticated; what it cannot read: StatusOfReply. The message has AWS's code
// and message.
absl::Status StatusOfAwsReply(const FetchReply& reply, const std::string& what);

}  // namespace medley::sched
