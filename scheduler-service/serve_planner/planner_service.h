// medley.planner.v1.PlannerService with the planners of a registry, so that they can run on a machine of their own.
//
// A call names its planner in request.planner.name; another name than those of the registry means the default one. The
// stream has each plan that is the cheapest so far, when the search finds it (at most 100 at once, and 2 a second), so
// that the caller has the best one if this process dies. The last message says `done`: it has the planner's result with
// its units and lower bound, or nothing if it found no plan. Errors: InvalidArgument (a request that is malformed, or
// that the planner cannot handle), Unauthenticated, and those of Admission. Cancellation, the budget and the deadline
// of the call end the search.
#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "common/base/clock.h"
#include "scheduler-service/handlers/admission.h"
#include "scheduler-service/handlers/bearer_token.h"
#include "scheduler-service/planning/registry.h"

namespace grpc {
class Service;
}

namespace medley::sched {

struct PlannerServiceOptions {
  std::string default_planner = "auto";           // a name of the registry
  BearerTokens tokens;                            // callers without a valid token get UNAUTHENTICATED
  base::nanoseconds receive = base::seconds(20);  // longest time to receive a request
};

// Borrows all references. `admission` bounds the calls that are received and answered at the same time; `stop` ends the
// searches, which then answer with their best plan.
std::unique_ptr<grpc::Service> MakePlannerService(const Registry& planners, Admission& admission,
                                                  const base::Clock& clock, std::stop_token stop,
                                                  PlannerServiceOptions options = {});

}  // namespace medley::sched
