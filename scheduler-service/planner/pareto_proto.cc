#include "scheduler-service/planner/pareto_proto.h"

#include "common/model/convert.h"

namespace medley::sched {

void ToProto(const ParetoResult& result, scheduler::v1::ParetoResponse& message) {
  for (const model::ProvisionedPlan& plan : result.plans) model::ToProto(plan, *message.add_plans());
  message.set_complete(result.complete);
  message.set_planning_seconds(result.planning_seconds);
  for (const model::Reason& reason : result.reasons) model::ToProto(reason, *message.add_reasons());
  message.set_catalog_revision(result.catalog_revision);
  google::protobuf::Timestamp time;
  if (!result.price_time.empty() && model::TimeToProto(result.price_time, time).ok()) {
    *message.mutable_price_time() = time;
  }
  for (const model::Resource& resource : result.resources) model::ToProto(resource, *message.add_resources());
}

}  // namespace medley::sched
