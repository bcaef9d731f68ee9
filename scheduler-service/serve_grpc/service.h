// SchedulerService over gRPC. The caller's deadline bounds the planning time, and cancellation stops the planner.
// Catalog streams end when the caller cancels or the service stops. RESOURCE_EXHAUSTED responses have the trailing
// metadata `retry-after` (seconds); every response has `x-request-id`. The operator's token puts a call into the
// operator's class of cost.
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
  int max_watches = 64;                           // further watches get RESOURCE_EXHAUSTED
  BearerTokens tokens;                            // callers without a valid token get UNAUTHENTICATED
  base::nanoseconds receive = base::seconds(20);  // longest time to receive a message
};

// Borrows `handlers` and `ids`. `drain` ends open streams; `stop` also ends planning. Request both before shutting the
// server down.
std::unique_ptr<grpc::Service> MakeGrpcService(Handlers& handlers, RequestIds& ids, std::stop_token drain,
                                               std::stop_token stop, GrpcServiceOptions options = {});

}  // namespace medley::sched
