// Code that all planning methods share: completing the request, and the version of the state behind a response.
#include "scheduler-service/handlers/handlers.h"

#include <malloc.h>

#include "common/base/status.h"
#include "common/model/convert.h"
#include "common/model/planning.h"
#include "scheduler-service/handlers/learned_state_store.h"
#include "scheduler-service/handlers/prepared.h"
#include "scheduler-service/prepare/prepare.h"

namespace medley::sched {
namespace {

constexpr int kParsing = 2;
constexpr int kParsingTiny = 2;  // further places, for short texts
constexpr int kWaitForParsing = 64;
constexpr int kTinyWaitForParsing = 256;
constexpr base::seconds kParsingWait{5};
constexpr size_t kLargeRequest = size_t{64} << 10;

}  // namespace

Handlers::Handlers(const Context& context, const Options& options)
    : context_(context),
      options_(options),
      admission_(options.admission, &context.metrics, context.clock),
      parsing_({.max_running = kParsing,
                .for_tiny = kParsingTiny,
                .for_operator = 1,
                .max_waiting = kWaitForParsing,
                .tiny_waiting = kTinyWaitForParsing,
                .max_wait = kParsingWait},
               nullptr, context.clock),
      memory_(options.request_memory),
      cache_(options.cache_bytes, context.metrics),
      record_(context.metrics) {}

// glibc keeps what is freed in the middle of its heaps. A page of the system is worth more than the time to return it,
// once a request was large.
void Handlers::GiveMemoryBack(size_t bytes) {
  if (bytes >= kLargeRequest) malloc_trim(0);
}

InputVersion Handlers::input_version() const {
  return {context_.catalog.Get()->revision, context_.learned_state.version()};
}

absl::StatusOr<Handlers::Prepared> Handlers::Prepare(const scheduler::v1::PlanRequest& in, const Call& call) const {
  Prepared out;
  MEDLEY_ASSIGN_OR_RETURN(out.request, model::FromProto(in));
  const CatalogSnapshot catalog = context_.catalog.Get();
  MEDLEY_RETURN_IF_ERROR(PrepareRequest(*catalog, context_.hardware, out.request));
  if (out.request.resources.empty()) {
    return base::InvalidArgument("resources: none given, and the catalog defines no resource types");
  }
  out.prediction = context_.learned_state.calibrator().Correct(out.request, call.tenant);
  MEDLEY_RETURN_IF_ERROR(context_.learned_state.ResolvePolicy(out.request, call.tenant));
  out.origin = {catalog->revision, catalog->price_time};
  return out;
}

}  // namespace medley::sched
