// Plays the coordinator.
#include <algorithm>

#include "operator/builders/objects.h"
#include "operator/builders/pods.h"
#include "tests/unit/operator/lifecycle/fake_cluster.h"

namespace medley::ops::lifecycle {
namespace {

bool RunsNow(const kube::Json& pod) {
  const kube::Object object(pod);
  return !object.deleting() && object.String("/status/phase") == "Running";
}

}  // namespace

bool FakeCluster::Runs(const std::string& member) const {
  const auto pod = pods_.find(member);
  return pod != pods_.end() && RunsNow(pod->second) && connection_ &&
         CoordinatorOf(kube::Object(pod->second)) == connection_->address;
}

bool FakeCluster::StepCoordinator() {
  const auto pod = pods_.find("adult-coordinator");
  const bool runs = pod != pods_.end() && RunsNow(pod->second);
  if (!runs) {
    const bool changed = coordinator_.has_value();
    coordinator_.reset();
    return changed;
  }
  const std::string uid = kube::Object(pod->second).uid();
  if (!coordinator_ || coordinator_->pod_uid != uid) {
    coordinator_.emplace();
    coordinator_->pod_uid = uid;
    const kube::Json* secret = FindObject("Secret", "adult-token");
    if (secret != nullptr) coordinator_->token = TokenOf(kube::Object(*secret));
    coordinator_->observation.phase = JobPhase::kWaiting;
    return true;
  }
  Observation& observation = coordinator_->observation;
  if (coordinator_->next) {
    const auto& slots = coordinator_->next->slots;
    if (!std::all_of(slots.begin(), slots.end(), [&](const MemberSlot& slot) { return Runs(slot.member); }))
      return false;
    for (const MemberSlot& slot : slots) {
      if (!broken_pools.contains(slot.pool)) continue;
      observation.refused = RefusedPlan{coordinator_->next->plan.generation, slot.member, "no such file"};
      observation.next_generation = 0;
      coordinator_->next.reset();
      return true;
    }
    coordinator_->plan = coordinator_->next;
    coordinator_->next.reset();
    observation.generation = observation.plan_generation = coordinator_->plan->plan.generation;
    observation.next_generation = 0;
    observation.phase = JobPhase::kTraining;
    observation.samples_total = 1000000;
    observation.samples_done = 1000;
    observation.throughput = 1000;
    return true;
  }
  return false;
}

}  // namespace medley::ops::lifecycle
