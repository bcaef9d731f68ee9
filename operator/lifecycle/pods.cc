#include "operator/lifecycle/pods.h"

#include <algorithm>

#include "common/base/status.h"
#include "kube/errors.h"
#include "kube/pod.h"
#include "operator/api/cause.h"
#include "operator/api/resources.h"
#include "operator/builders/credentials.h"
#include "operator/lifecycle/pass.h"
#include "operator/lifecycle/pod_state.h"
#include "operator/lifecycle/succession.h"
#include "operator/records/left_result.h"
#include "operator/records/profile_store.h"

namespace medley::ops::lifecycle {
namespace {

constexpr base::nanoseconds kQuotaRetry = base::seconds(5);
constexpr base::nanoseconds kAdmissionRetry = base::seconds(20);
constexpr base::nanoseconds kExistingPodRetry = base::seconds(1);
constexpr base::nanoseconds kLogPatience = base::seconds(2);
constexpr int kLogLines = 20;

// The messages of ResourceQuota's admission: "exceeded quota: q, requested: ...", "failed quota: q: must specify".
bool IsQuotaRefusal(const absl::Status& status) {
  const std::string why = base::Message(status);
  return status.code() == absl::StatusCode::kPermissionDenied &&
         (why.find("exceeded quota") != std::string::npos || why.find("failed quota") != std::string::npos);
}

void HandleLostName(Pass& pass, const kube::Object& existing) {
  pass.Own(&Memory::pods).occupied[existing.key().name] = true;
  pass.Warning(
      Reason::kFailedCreatePod,
      fmt::format("Pod {} of an earlier job was deleted, but its node {} does not confirm it: the job gives its "
                  "own pod another name.",
                  existing.key().name, existing.String("/spec/nodeName")));
}

absl::Status HandleExistingPod(Pass& pass, const kube::Object& pod) {
  pass.RequeueAfter(kExistingPodRetry);
  MEDLEY_ASSIGN_OR_RETURN(const absl::StatusOr<kube::Object> existing,
                          pass.Ask(GetObject{kube::resources::Pods(), pod.key()}));
  if (!existing.ok()) return absl::OkStatus();  // a later pass creates it
  if (existing->deleting()) {
    if (IsLost(pass, *existing)) HandleLostName(pass, *existing);
    return absl::OkStatus();
  }
  const auto owner = existing->controller();
  if (owner && owner->uid == pass.object.uid()) return absl::OkStatus();  // the cache is behind
  const std::string whose = owner ? owner->kind + " " + owner->name : "no controller";
  ReportTakenName(pass, *existing);
  return base::AlreadyExists("create pod {}: a pod of this name belongs to {}", pod.key().ToString(), whose);
}

absl::Status HandleCreation(Pass& pass, const kube::Object& pod, const absl::Status& made) {
  PodsState& own = pass.Own(&Memory::pods);
  own.refused.erase(pod.key().name);
  own.occupied.erase(pod.key().name);
  if (made.ok()) {
    ReportFreeName(pass, pod.kind(), pod.key());
    return absl::OkStatus();
  }
  if (kube::IsAlreadyExists(made)) {
    own.occupied[pod.key().name] = false;
    return HandleExistingPod(pass, pod);
  }
  if (made.code() != absl::StatusCode::kPermissionDenied && made.code() != absl::StatusCode::kInvalidArgument) {
    return base::Annotate(made, "create pod " + pod.key().ToString());
  }
  pass.Warning(Reason::kFailedCreatePod, "pod " + pod.key().name + ": " + base::Message(made));
  // Quotas are counted late, so what is used now may be free soon. The rest of the job goes on.
  const bool by_quota = IsQuotaRefusal(made);
  own.refused[pod.key().name] = {by_quota, base::Message(made)};
  pass.RequeueAfter(by_quota ? kQuotaRetry : kAdmissionRetry);
  return absl::OkStatus();
}

}  // namespace

void ForgetDeletedPods(Pass& pass) {
  PodsState& pods = pass.Own(&Memory::pods);
  std::set<std::string> existing;
  for (const auto& [name, pod] : pass.world.pods) existing.insert(pod->uid());
  for (const kube::ObjectPtr& pod : pass.world.copies) existing.insert(pod->uid());
  std::erase_if(pods.deleted, [&](const std::string& uid) { return !existing.contains(uid); });
  std::erase_if(pods.log_asked, [&](const auto& asked) { return !existing.contains(asked.first); });
}

void ForgetRefusals(Pass& pass) { pass.Own(&Memory::pods).refused.clear(); }

absl::Status CreatePodsOf(Pass& pass, std::vector<kube::Object> pods, NodeChoice nodes) {
  const ObjectsState& objects = pass.memory.objects;
  const std::string fingerprint = FingerprintOf(objects.credentials);
  for (kube::Object& pod : pods) {
    pod.SetAnnotation(kLeaderTermAnnotation, std::to_string(pass.world.leader_term));
    if (!fingerprint.empty()) {
      pod.SetAnnotation(kTokenAnnotation, fingerprint);
      MountCredentials(objects.secret, fingerprint, pod);
    }
  }
  MEDLEY_ASSIGN_OR_RETURN(const CreatePods::Outcomes outcomes,
                          pass.Ask(CreatePods{pods, nodes == NodeChoice::kAvoidNoticed}));
  absl::Status first_error;
  for (size_t i = 0; i < outcomes.tried.size() && i < pods.size(); ++i) {
    const absl::Status handled = HandleCreation(pass, pods[i], outcomes.tried[i]);
    if (first_error.ok()) first_error = handled;
  }
  return first_error;
}

bool IsNameLost(const Pass& pass, const std::string& name) {
  const auto occupied = pass.memory.pods.occupied.find(name);
  return occupied != pass.memory.pods.occupied.end() && occupied->second;
}

absl::Status DeletePod(Pass& pass, const kube::Object& pod) {
  return DeleteSome(pass, {std::make_shared<const kube::Object>(pod)});
}

absl::Status DeleteSome(Pass& pass, const std::vector<kube::ObjectPtr>& pods) {
  DeletePods action;
  for (const kube::ObjectPtr& pod : pods) {
    if (!pass.IsTerminating(*pod)) action.pods.push_back({pod->key(), pod->uid()});
  }
  if (action.pods.empty()) return absl::OkStatus();
  MEDLEY_ASSIGN_OR_RETURN(const DeletePods::Outcome outcome, pass.Ask(std::move(action)));
  pass.Own(&Memory::pods).deleted.insert(outcome.deleted.begin(), outcome.deleted.end());
  return outcome.status;
}

absl::Status DeleteCopies(Pass& pass) {
  for (const kube::ObjectPtr& pod : pass.world.copies) {
    if (pass.IsTerminating(*pod)) continue;
    pass.Warning("PodCopied",
                 fmt::format("Pod {} is a copy of a pod of the job that another client has made. It holds no "
                             "unit, and is deleted.",
                             pod->key().name));
  }
  const absl::Status deleted = DeleteSome(pass, pass.world.copies);
  if (deleted.ok() || pass.unanswered()) return deleted;
  pass.RequeueAfter(kAdmissionRetry);
  pass.Warning("PodCopied", base::Message(deleted));  // the job goes on without its names
  return absl::OkStatus();
}

absl::Status DeletePodsOf(Pass& pass, WhichPods which) {
  std::vector<kube::ObjectPtr> pods;
  for (const auto& [name, pod] : pass.world.pods) {
    // A pod whose sidecars run on holds its resources.
    if (which != WhichPods::kAll && kube::HasEnded(*pod)) continue;
    const bool coordinator = pod->label(kRoleLabel) == ToString(Role::kCoordinator);
    if (which != WhichPods::kRunningMembers || !coordinator) pods.push_back(pod);
  }
  return DeleteSome(pass, pods);
}

absl::StatusOr<std::optional<std::string>> LastLineOf(Pass& pass, const kube::Object& pod) {
  auto& asked = pass.Own(&Memory::pods).log_asked;
  const base::SteadyTime since = asked.try_emplace(pod.uid(), pass.world.steady).first->second;
  MEDLEY_ASSIGN_OR_RETURN(const ReadLog::Answer log, pass.Ask(ReadLog{pod.key(), pod.uid(), kLogLines}));
  const base::nanoseconds left = since + kLogPatience - pass.world.steady;
  if (!log &&
      left > base::nanoseconds(0)) {  // a kubelet that does not answer must not keep the pod from being replaced
    pass.RequeueAfter(left);
    return std::optional<std::string>();
  }
  asked.erase(pod.uid());
  if (log && log->ok()) return std::optional<std::string>(CauseIn(LastLine(**log)));
  // The end of the log, where the kubelet has put it into the pod's status (FallbackToLogsOnError).
  return std::optional<std::string>(CauseIn(LastLine(TerminationMessage(pod))));
}

absl::StatusOr<std::optional<std::string>> HowItEnded(Pass& pass, const kube::Object& pod) {
  std::optional<std::string> last_line = "";
  if (LogTellsEnd(pod)) {
    MEDLEY_ASSIGN_OR_RETURN(last_line, LastLineOf(pass, pod));
  }
  if (!last_line) return std::optional<std::string>();
  return std::optional<std::string>(DescribeEnd(pod, *last_line));
}

int BackoffSeconds(int failures) { return std::min(60, 1 << std::min(6, failures)); }

}  // namespace medley::ops::lifecycle
