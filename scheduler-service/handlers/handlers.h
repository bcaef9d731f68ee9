// The handlers behind the gRPC and REST front ends, with protobuf requests and responses.
//
// Every method takes the request and the call (request ID, deadline, cancellation) and fills the response. It also
// reports in the call how the response was made. Errors: InvalidArgument with the field's path, ResourceExhausted
// (overloaded), DeadlineExceeded, Cancelled, Unavailable (the service is stopping). An infeasible request is not an
// error: the response has the reasons. Thread-safe.
#pragma once

#include <absl/status/status.h>

#include <memory>
#include <string_view>

#include "common/base/clock.h"
#include "common/metrics/metrics.h"
#include "medley/scheduler/v1/scheduler.pb.h"
#include "scheduler-service/catalog/catalog.h"
#include "scheduler-service/handlers/admission.h"
#include "scheduler-service/handlers/call.h"
#include "scheduler-service/handlers/call_record.h"
#include "scheduler-service/handlers/learned_state_store.h"
#include "scheduler-service/handlers/request_memory.h"
#include "scheduler-service/handlers/result_cache.h"
#include "scheduler-service/planning/registry.h"
#include "scheduler-service/profile/hardware.h"

namespace medley::sched {

class LearnedStateStore;
class Registry;

// The objects that the handlers use. All are borrowed.
struct Context {
  const Registry& planners;
  CatalogStore& catalog;
  const HardwareCatalog& hardware;
  LearnedStateStore& learned_state;
  metrics::Registry& metrics;
  const base::Clock& clock;
};

class Handlers {
 public:
  struct Options {
    Admission::Options admission;
    size_t cache_bytes = size_t{32} << 20;               // 0: no cache
    base::nanoseconds max_planning = base::seconds(60);  // upper bound of one request's planning time
    // Time of a tiny request, after which it is planned as a cheap one, and of a cheap one, which becomes expensive.
    base::nanoseconds max_tiny = base::milliseconds(50);
    base::nanoseconds max_cheap = base::seconds(2);
    int64_t request_memory = int64_t{32} << 20;  // bytes of all requests that wait or run
  };
  Handlers(const Context& context, const Options& options);

  absl::Status Plan(const scheduler::v1::PlanRequest& in, Call& call, scheduler::v1::PlanResponse& out);
  absl::Status Pareto(const scheduler::v1::ParetoRequest& in, Call& call, scheduler::v1::ParetoResponse& out);
  absl::Status Provision(const scheduler::v1::ProvisionRequest& in, Call& call, scheduler::v1::ProvisionResponse& out);
  absl::Status Evaluate(const scheduler::v1::EvaluateRequest& in, Call& call, scheduler::v1::EvaluateResponse& out);
  absl::Status Simulate(const scheduler::v1::SimulateRequest& in, Call& call, scheduler::v1::SimulateResponse& out);
  absl::Status Profile(const scheduler::v1::ProfileRequest& in, Call& call, scheduler::v1::ProfileResponse& out);
  absl::Status Observe(const scheduler::v1::ObserveRequest& in, Call& call, scheduler::v1::ObserveResponse& out);
  absl::Status ListHardware(const scheduler::v1::ListHardwareRequest& in, Call& call,
                            scheduler::v1::ListHardwareResponse& out);
  absl::Status ListPlanners(const scheduler::v1::ListPlannersRequest& in, Call& call,
                            scheduler::v1::ListPlannersResponse& out);
  absl::Status GetCatalog(const scheduler::v1::GetCatalogRequest& in, Call& call,
                          scheduler::v1::GetCatalogResponse& out);
  absl::Status ListPrices(const scheduler::v1::ListPricesRequest& in, Call& call,
                          scheduler::v1::ListPricesResponse& out);
  // Waits for a catalog revision greater than `after`: one message of a stream. NotFound after `timeout`.
  absl::Status NextCatalog(int64_t after, base::nanoseconds timeout, const Call& call,
                           scheduler::v1::WatchCatalogResponse& out);

  // The version of the state that a response computed now would use.
  InputVersion input_version() const;
  // Each front end (gRPC, REST) caches its serialized responses here.
  ResultCache& cache() { return cache_; }
  const CallRecord& record() const { return record_; }
  Admission& admission() { return admission_; }
  // Limits how many texts are parsed at the same time.
  Admission& parsing() { return parsing_; }
  // Gives memory back to the system after a request whose text or message has `bytes`.
  static void GiveMemoryBack(size_t bytes);
  const base::Clock& clock() const { return context_.clock; }

 private:
  struct Prepared;

  // Returns the cached response, or calls `work(out, end)` while holding a permit of admission(); at `end` the permit
  // of a tiny or cheap request ends. Logs and measures both.
  template <typename In, typename Out, typename Work>
  absl::Status Answer(const char* method, const In& in, Call& call, Out& out, Work work);
  // The same without cache and admission, for handlers that only read.
  template <typename Work>
  absl::Status Read(const char* method, Call& call, Work work);
  // The request as planned with: the catalog's prices, analytic profiles, corrections.
  // Errors: InvalidArgument with the field's path.
  absl::StatusOr<Prepared> Prepare(const scheduler::v1::PlanRequest& in, const Call& call) const;
  // The model and its times, from the profile or the request of `in`; and the limits on memory of the request.
  struct ToSimulate;
  absl::StatusOr<ToSimulate> PrepareSimulation(const scheduler::v1::SimulateRequest& in, Call& call) const;
  absl::Status DoPlan(const scheduler::v1::PlanRequest& in, Call& call, base::SteadyTime end,
                      scheduler::v1::PlanResponse& out);
  template <typename In, typename Out, typename Work>
  absl::Status Admitted(const In& in, Call& call, Out& out, Work work);

  const Context context_;
  const Options options_;
  Admission admission_;
  Admission parsing_;
  RequestMemory memory_;
  ResultCache cache_;
  const CallRecord record_;
};

}  // namespace medley::sched
