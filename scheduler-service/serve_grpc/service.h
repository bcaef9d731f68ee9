// SchedulerService over gRPC: a caller's deadline bounds the planner and its leaving ends it; streams of the catalog
// end when the caller or the service leaves. Refusals for want of room carry the trailing metadata `retry-after`
// (seconds); every answer carries `x-request-id`.
#pragma once

#include <memory>
#include <stop_token>

#include "scheduler-service/handlers/bearer_token.h"
#include "scheduler-service/handlers/handlers.h"
#include "scheduler-service/handlers/request_id.h"

namespace grpc {
class Service;
}

namespace medley::sched {

struct GrpcServiceOptions {
  int max_watches = 64;  // more are refused with RESOURCE_EXHAUSTED
  BearerTokens tokens;   // callers without one get UNAUTHENTICATED
};

// Borrows `handlers` and `ids`. `drain` ends open streams; `stop` ends planning as well. Request both before the
// server is shut down for good.
std::unique_ptr<grpc::Service> MakeGrpcService(Handlers& handlers, RequestIds& ids, std::stop_token drain,
                                               std::stop_token stop, GrpcServiceOptions options = {});

}  // namespace medley::sched
