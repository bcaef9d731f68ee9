// The handler for measurements of running jobs.
#include "common/base/status.h"
#include "common/model/convert.h"
#include "common/model/observation.h"
#include "common/model/prediction.h"
#include "scheduler-service/handlers/answer.h"
#include "scheduler-service/handlers/handlers.h"
#include "scheduler-service/handlers/learned_state_store.h"
#include "scheduler-service/prepare/prepare.h"

namespace medley::sched {

namespace pb = scheduler::v1;

absl::Status Handlers::Observe(const pb::ObserveRequest& in, Call& call, pb::ObserveResponse& out) {
  return Read("Observe", call, [&]() -> absl::Status {
    MEDLEY_ASSIGN_OR_RETURN(model::JobObservation observation, model::FromProto(in));
    // Policies are trained on costs.
    MEDLEY_RETURN_IF_ERROR(PrepareRequest(*context_.catalog.Get(), context_.hardware, observation.request));
    MEDLEY_ASSIGN_OR_RETURN(const LearnedStateStore::Learned learned,
                            context_.learned_state.Observe(observation, call.tenant));
    model::ToProto(learned.prediction, *out.mutable_prediction());
    out.mutable_policy_training()->set_queued(learned.refusal.empty());
    out.mutable_policy_training()->set_reason(learned.refusal);
    out.mutable_policy_training()->set_message(learned.message);
    return absl::OkStatus();
  });
}

}  // namespace medley::sched
