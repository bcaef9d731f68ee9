// The handler for measurements of running jobs.
#include "common/base/status.h"
#include "common/model/convert.h"
#include "common/model/observation.h"
#include "scheduler-service/handlers/answer.h"
#include "scheduler-service/handlers/handlers.h"
#include "scheduler-service/prepare/prepare.h"

namespace medley::sched {

namespace pb = scheduler::v1;

absl::Status Handlers::Observe(const pb::ObserveRequest& in, Call& call, pb::ObserveResponse& out) {
  return Read("Observe", call, [&]() -> absl::Status {
    MEDLEY_ASSIGN_OR_RETURN(model::JobObservation observation, model::FromProto(in));
    // Policies are trained on costs.
    MEDLEY_RETURN_IF_ERROR(PrepareRequest(*context_.catalog.Get(), context_.hardware, observation.request));
    MEDLEY_ASSIGN_OR_RETURN(const model::Prediction prediction,
                            context_.learned_state.Observe(observation, call.tenant));
    model::ToProto(prediction, *out.mutable_prediction());
    return absl::OkStatus();
  });
}

}  // namespace medley::sched
