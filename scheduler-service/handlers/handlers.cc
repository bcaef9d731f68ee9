// Code that all planning methods share: completing the request, and the version of the state behind a response.
#include "scheduler-service/handlers/handlers.h"

#include "common/base/status.h"
#include "common/model/convert.h"
#include "scheduler-service/handlers/prepared.h"
#include "scheduler-service/prepare/prepare.h"

namespace medley::sched {

Handlers::Handlers(const Context& context, const Options& options)
    : context_(context),
      options_(options),
      admission_(options.admission, context.metrics, context.clock),
      cache_(options.cache_bytes, context.metrics),
      record_(context.metrics) {}

InputVersion Handlers::input_version() const {
  return {context_.catalog.Get()->revision, context_.learned_state.version()};
}

absl::StatusOr<Handlers::Prepared> Handlers::Prepare(const scheduler::v1::PlanRequest& in) const {
  Prepared out;
  MEDLEY_ASSIGN_OR_RETURN(out.request, model::FromProto(in));
  const CatalogSnapshot catalog = context_.catalog.Get();
  MEDLEY_RETURN_IF_ERROR(PrepareRequest(*catalog, context_.hardware, out.request));
  if (out.request.resources.empty()) {
    return base::InvalidArgument("resources: none given, and the catalog defines no resource types");
  }
  out.prediction = context_.learned_state.calibrator().Correct(out.request);
  MEDLEY_RETURN_IF_ERROR(context_.learned_state.ResolvePolicy(out.request));
  out.origin = {catalog->revision, catalog->price_time};
  return out;
}

}  // namespace medley::sched
