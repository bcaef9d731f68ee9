// What must hold of every action of a pass, what must be equal after it, and what another client does.
#include <algorithm>

#include "operator/api/names.h"
#include "operator/api/resources.h"
#include "operator/api/worker_state.h"
#include "operator/builders/pods.h"
#include "operator/lifecycle/pod_state.h"
#include "tests/unit/operator/lifecycle/fake_cluster.h"

namespace medley::ops::lifecycle {

void FakeCluster::EditObject(const std::string& kind, const std::string& name, const kube::Json& merge_patch) {
  kube::Json object = objects_.at(kind + "/" + name);
  kube::MergePatch(object, merge_patch);
  Store(kind, std::move(object));
}

const kube::Json* FakeCluster::FindObject(const std::string& kind, const std::string& name) const {
  const auto found = objects_.find(kind + "/" + name);
  return found == objects_.end() ? nullptr : &found->second;
}

void FakeCluster::Violate(const std::string& what) { violations_.push_back(what + "\nafter\n" + trace()); }

bool FakeCluster::WantsSuspension() const {
  return kube::Object(job).At("/spec/runPolicy/suspend") == kube::Json(true);
}

void FakeCluster::CheckAction(const Action& action) {
  const bool starts = std::holds_alternative<CreatePods>(action) || std::holds_alternative<AskForPlan>(action) ||
                      std::holds_alternative<SavePlan>(action) || std::holds_alternative<SendPlan>(action);
  const bool deleted = job["metadata"].contains("deletionTimestamp");
  const JobStatus current = starts ? status() : JobStatus();
  const bool suspended = current.conditions.IsTrue(kSuspendedCondition) && WantsSuspension();
  if (starts && (deleted || current.finished() || suspended)) {
    Violate("a job that has ended or is suspended does: " + Describe(action));
  }
  if (const auto* create = std::get_if<CreatePods>(&action)) {
    std::set<std::string> names;
    for (const kube::Object& pod : create->pods) {
      const std::string name = pod.key().name;
      if (!names.insert(name).second) Violate("the same pod twice: " + name);
      if (seen_.pods.contains(name)) Violate("creates a pod that it sees: " + name);
      if (IsMember(pod) && !reserved_.contains(name)) Violate("creates a pod whose unit is not reserved: " + name);
    }
  }
  if (const auto* deletion = std::get_if<DeletePods>(&action)) CheckDeletion(*deletion);
}

bool FakeCluster::HasReasonToDelete(const kube::Object& object) const {
  if (!IsMember(object) || WorkerHasEnded(object) || object.String("/status/phase") != "Running") return true;
  if (job["metadata"].contains("deletionTimestamp") || status().finished()) return true;
  if (WantsSuspension()) return true;
  if (Reason(kSuspendedCondition) == "Unknown/Suspending") return true;  // and the coordinator has stopped
  // Without a coordinator that trains, the job is restarted or at its end.
  const auto leader = pods_.find(leader_pod());
  const bool leads = leader != pods_.end() && !leader->second.deleting() &&
                     leader->second.String("/status/phase") == "Running" && coordinator_ &&
                     coordinator_->pod_uid == leader->second.uid();
  if (!leads || !coordinator_->plan || !connection_ || !Obeys(object)) return true;
  const JobPhase phase = coordinator_->observation.phase;
  if (phase == JobPhase::kComplete || phase == JobPhase::kFailed) return true;
  const auto& slots = coordinator_->plan->slots;
  return std::none_of(slots.begin(), slots.end(),
                      [&](const MemberSlot& slot) { return slot.member == object.key().name; });
}

void FakeCluster::CheckDeletion(const DeletePods& action) {
  for (const DeletePods::Target& target : action.pods) {
    const bool is_copy = std::any_of(seen_.copies.begin(), seen_.copies.end(),
                                     [&](const kube::ObjectPtr& pod) { return pod->uid() == target.uid; });
    if (is_copy) continue;
    const auto seen = seen_.pods.find(target.key.name);
    if (seen == seen_.pods.end() || seen->second->uid() != target.uid)
      Violate("deletes an unknown pod " + target.key.name);
    const auto pod = pods_.find(target.key.name);
    if (pod == pods_.end() || pod->second.uid() != target.uid) continue;
    if (!HasReasonToDelete(pod->second)) Violate("deletes a member of the generation in force: " + target.key.name);
  }
}

std::string FakeCluster::WhyPlanIsRefused(const std::string& known_version) const {
  const kube::Json* found = FindObject("ConfigMap", "adult-plan");
  if (found == nullptr || kube::Object(*found).resource_version() == known_version) return "";
  const absl::Status genuine = options.record_keys.Check(RecordKind::kPlan, "job-1", kube::Object(*found));
  return genuine.ok() ? "" : base::Message(genuine);
}

std::string FakeCluster::Digest() const {
  std::string digest;
  std::map<std::string, int> counts;
  for (const auto& [name, object] : pods_) {
    ++counts[fmt::format("{} on pool '{}', {}{}", object.label(kRoleLabel), object.label("medley.dev/pool"),
                         object.String("/status/phase"), object.deleting() ? ", terminating" : "")];
  }
  for (const auto& [what, count] : counts) digest += fmt::format("{} x {}\n", count, what);
  if (const auto plan = stored_plan()) {
    digest += "plan " + model::Summary(plan->plan, plan->layer_names) + "\n";
  }
  for (const auto& [id, object] : objects_) digest += id + "\n";
  const JobStatus current = status();
  for (const Condition& condition : current.conditions.all()) {
    // Why the last rescale or restart happened depends on what came last.
    const bool history = condition.type == kRescalingCondition || condition.type == kRestartingCondition;
    if (history && condition.status != ConditionStatus::kTrue) continue;
    digest += fmt::format("{} {} {}\n", condition.type, ToString(condition.status), history ? "" : condition.reason);
  }
  digest += fmt::format("{} replicas\n", current.replicas);
  return digest;
}

}  // namespace medley::ops::lifecycle
