// The service's answers, in wire types: one set of handlers behind gRPC and REST.
//
// Thread-safe. At most `max_concurrent` plans, provisions and evaluations run at once; more are refused with
// ResourceExhausted, for the caller to try again.
#pragma once

#include <absl/status/status.h>

#include <atomic>
#include <stop_token>
#include <string_view>

#include "common/base/clock.h"
#include "common/metrics/metrics.h"
#include "medley/scheduler/v1/scheduler.pb.h"
#include "scheduler-service/catalog/catalog.h"
#include "scheduler-service/planner/planner.h"

namespace medley::sched {

// How long a caller waits.
struct CallLimits {
  std::stop_token stop;
  base::SteadyTime deadline = base::SteadyTime::max();
};

class Handlers {
 public:
  struct Options {
    int max_concurrent = 4;
  };
  // Everything is borrowed.
  Handlers(const Registry& planners, CatalogStore& catalog, metrics::Registry& metrics, const base::Clock& clock,
           Options options);

  // Errors: InvalidArgument with the field's path, ResourceExhausted, DeadlineExceeded. Infeasible is not an error.
  absl::Status Plan(const scheduler::v1::PlanRequest& in, const CallLimits& limits, scheduler::v1::PlanResponse& out);
  absl::Status Provision(const scheduler::v1::ProvisionRequest& in, scheduler::v1::ProvisionResponse& out);
  absl::Status Evaluate(const scheduler::v1::EvaluateRequest& in, scheduler::v1::EvaluateResponse& out);
  void ListPlanners(scheduler::v1::ListPlannersResponse& out) const;
  void GetCatalog(scheduler::v1::GetCatalogResponse& out) const;

  CatalogStore& catalog() { return catalog_; }
  const base::Clock& clock() const { return clock_; }

 private:
  template <typename Work>
  absl::Status Measured(const char* method, Work work);
  absl::Status DoPlan(const scheduler::v1::PlanRequest& in, const CallLimits& limits,
                      scheduler::v1::PlanResponse& out);

  const Registry& planners_;
  CatalogStore& catalog_;
  metrics::Registry& metrics_;
  const base::Clock& clock_;
  const Options options_;
  std::atomic<int> running_{0};
};

}  // namespace medley::sched
