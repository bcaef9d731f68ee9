// SchedulerService over gRPC: deadlines bound the planner, streams of the catalog end when the client or the service
// leaves. No token: the service holds no secrets, and it is reached within the cluster only.
#pragma once

#include <memory>
#include <stop_token>

#include "scheduler-service/handlers/handlers.h"

namespace grpc {
class Service;
}

namespace medley::sched {

struct GrpcServiceOptions {
  int max_watches = 64;  // more are refused with RESOURCE_EXHAUSTED
};

// Borrows `handlers`. `stop` ends open streams and planning; request it before the server is shut down.
std::unique_ptr<grpc::Service> MakeGrpcService(Handlers& handlers, std::stop_token stop,
                                               GrpcServiceOptions options = {});

}  // namespace medley::sched
