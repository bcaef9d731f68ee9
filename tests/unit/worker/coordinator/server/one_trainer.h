// A plan of one trainer, "job-0", for tests of a coordinator whose members are the test itself.
#pragma once

#include "medley/job/v1/coordinator.pb.h"

namespace medley::worker {

inline job::v1::ApplyPlanRequest OneTrainer() {
  job::v1::ApplyPlanRequest request;
  plan::v1::ExecutionPlan& plan = *request.mutable_plan();
  plan.set_generation(1);
  plan.set_job_uid("uid");
  plan.add_stages()->add_operations()->set_end(1);
  plan::v1::Group& group = *plan.mutable_stages(0)->add_groups();
  group.set_pool("cpu");
  group.set_units(1);
  group.set_share(1);
  job::v1::MemberSlot& slot = *request.add_slots();
  slot.set_member("job-0");
  slot.set_role(job::v1::MEMBER_ROLE_TRAINER);
  slot.set_pool("cpu");
  return request;
}

}  // namespace medley::worker
