// Plays the coordinator.
#include <algorithm>
#include <utility>

#include "operator/api/resources.h"
#include "operator/builders/credentials.h"
#include "operator/builders/objects.h"
#include "operator/builders/pods.h"
#include "tests/unit/operator/lifecycle/fake_cluster.h"

namespace medley::ops::lifecycle {
namespace {

bool RunsNow(const kube::Object& pod) { return !pod.deleting() && pod.String("/status/phase") == "Running"; }

std::string MountedSecret(const kube::Object& pod) {
  for (const kube::Json& volume : pod.At("/spec/volumes")) {
    if (volume["name"] == "credentials") return volume["secret"]["secretName"];
  }
  return "";
}

int64_t TermOf(const kube::Object& coordinator) {
  for (const kube::Json& entry : coordinator.At("/spec/containers/0/env")) {
    if (entry.value("name", "") == "MEDLEY_COORDINATOR_TERM") return std::stoll(entry.value("value", "0"));
  }
  return 0;
}

}  // namespace

// A pod that has left the API may still run, and two processes of one term would both lead.
void FakeCluster::CheckTerm(const kube::Object& created) {
  const int64_t term = TermOf(created);
  if (term > 0 && !terms_.insert(term).second) Violate(fmt::format("a second coordinator of term {}", term));
}

// The running coordinator with the largest term; without one, the pod that was named first.
std::string FakeCluster::leader_pod() const {
  std::string leader = "adult-coordinator";
  int64_t newest = -1;
  for (const auto& [name, object] : pods_) {
    const bool lives = RunsNow(object) && !nodes_not_ready.contains(object.String("/spec/nodeName"));
    if (object.label(kRoleLabel) != "coordinator" || !lives || TermOf(object) <= newest) continue;
    newest = TermOf(object);
    leader = name;
  }
  return leader;
}

bool FakeCluster::TalksToLeader() const {
  const auto leader = pods_.find(leader_pod());
  if (!Talks() || leader == pods_.end()) return false;
  return connection_->address.starts_with(leader->second.String("/status/podIP") + ":");
}

bool FakeCluster::Obeys(const kube::Object& member) const {
  return CoordinatorOf(member) == connection_->address || !member.annotation(kCoordinatorTermAnnotation).empty();
}

// The members follow, and the former coordinator exits.
void FakeCluster::TakeOver(const std::string& leader) {
  coordinator_->pod_uid = pods_.at(leader).uid();
  for (const auto& [name, object] : pods_) {
    if (object.label(kRoleLabel) != "coordinator" || name == leader || !RunsNow(object)) continue;
    if (nodes_not_ready.contains(object.String("/spec/nodeName"))) continue;  // nobody hears of it
    SetPodStatus(
        name, {{"containerStatuses",
                kube::Json::array(
                    {{{"name", "worker"}, {"restartCount", 1}, {"lastState", {{"terminated", {{"exitCode", 3}}}}}}})}});
  }
}

bool FakeCluster::Runs(const std::string& member) const {
  const auto pod = pods_.find(member);
  return pod != pods_.end() && RunsNow(pod->second) && connection_ && Obeys(pod->second);
}

bool FakeCluster::StepCoordinator() {
  const std::string leader = leader_pod();
  const auto pod = pods_.find(leader);
  const bool runs = pod != pods_.end() && RunsNow(pod->second);
  if (!runs) {
    const bool changed = coordinator_.has_value();
    if (changed) journal_ = std::move(coordinator_);
    coordinator_.reset();
    return changed;
  }
  const std::string uid = pod->second.uid();
  const bool keeps_journal = job["spec"].contains(nlohmann::json::json_pointer("/checkpoint/volume"));
  if (!coordinator_ && keeps_journal) coordinator_ = std::exchange(journal_, std::nullopt);
  if (coordinator_ && coordinator_->pod_uid != uid && keeps_journal) {
    TakeOver(leader);
    return true;
  }
  if (!coordinator_ || coordinator_->pod_uid != uid) {
    coordinator_.emplace();
    coordinator_->pod_uid = uid;
    const kube::Json* secret = FindObject("Secret", MountedSecret(pod->second));
    if (secret != nullptr) coordinator_->token = CredentialsOf(kube::Object(*secret)).token;
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
    observation.stages.clear();
    if (measure) measure(coordinator_->plan->plan, observation);
    return true;
  }
  return false;
}

}  // namespace medley::ops::lifecycle
