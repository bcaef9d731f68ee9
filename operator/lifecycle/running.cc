#include "operator/lifecycle/running.h"

#include <algorithm>

#include "common/base/host_port.h"
#include "common/base/status.h"
#include "common/model/leader_term.h"
#include "operator/api/resources.h"
#include "operator/lifecycle/disruption.h"
#include "operator/lifecycle/feedback.h"
#include "operator/lifecycle/lost_token.h"
#include "operator/lifecycle/members.h"
#include "operator/lifecycle/objects.h"
#include "operator/lifecycle/observing.h"
#include "operator/lifecycle/pass.h"
#include "operator/lifecycle/placement.h"
#include "operator/lifecycle/planning.h"
#include "operator/lifecycle/pod_state.h"
#include "operator/lifecycle/pods.h"
#include "operator/lifecycle/refusal.h"
#include "operator/lifecycle/replanning.h"
#include "operator/lifecycle/restarts.h"
#include "operator/lifecycle/sizes.h"
#include "operator/lifecycle/starting.h"
#include "operator/lifecycle/succession.h"

namespace medley::ops::lifecycle {
namespace {

constexpr base::nanoseconds kSendAgain = base::seconds(3);     // to a coordinator that has not confirmed it
constexpr base::nanoseconds kRefusedRetry = base::seconds(1);  // the coordinator is starting

// Empty while the coordinator has none.
std::string AddressOf(const Pass& pass, const kube::Object& coordinator) {
  const std::string ip = coordinator.String("/status/podIP");
  if (pass.IsTerminating(coordinator) || WorkerHasEnded(coordinator) || ip.empty()) return "";
  return base::JoinHostPort(ip, pass.options.worker.listen_port);
}

absl::StatusOr<std::string> EnsureCoordinator(Pass& pass, const TrainingJob& job) {
  const PlanRecord& record = *pass.memory.stored_plan.record;
  const std::string name = record.CoordinatorPodName(job.name());
  const kube::ObjectPtr pod = pass.Pod(name);
  if (pod == nullptr) {
    MEDLEY_RETURN_IF_ERROR(CreateCoordinator(pass, job));
    return std::string();
  }
  const std::string address = AddressOf(pass, *pod);
  if (address.empty()) return address;
  if (record.coordinator_uid != pod->uid()) MEDLEY_RETURN_IF_ERROR(StoreCoordinator(pass, job, pod->uid(), 0));
  return address;
}

absl::Status ConnectTo(Pass& pass, const TrainingJob& job, const std::string& address) {
  MEDLEY_ASSIGN_OR_RETURN(const JobCredentials credentials, ChooseCredentials(pass, job));
  pass.coordinator = address;
  const auto& now = pass.world.connection;
  if (now && now->address == address && now->credentials == credentials) return absl::OkStatus();
  MEDLEY_ASSIGN_OR_RETURN(pass.observed, pass.Ask(Connect{{job.object.uid(), address, credentials}}));
  return absl::OkStatus();
}

absl::Status ApplyPlan(Pass& pass, const TrainingJob& job) {
  if (IsRefused(pass)) return absl::OkStatus();
  RunningState& state = pass.Own(&Memory::running);
  const PlanRecord& record = *pass.memory.stored_plan.record;
  const Observation* observed = pass.observed.get();
  const int64_t generation = record.plan.generation;
  const bool known = observed != nullptr && observed->generation > 0 &&
                     (observed->plan_generation == generation || observed->next_generation >= generation);
  const bool sent = state.sent_to == pass.coordinator && state.sent_generation == generation;
  if (sent && (known || pass.world.steady - state.sent_at < kSendAgain)) {
    if (!known) pass.RequeueAfter(kSendAgain);
    return absl::OkStatus();
  }
  if (known && state.sent_generation == 0) {  // an operator that has just started finds the plan applied
    state.sent_to = pass.coordinator;
    state.sent_generation = generation;
    return absl::OkStatus();
  }
  MEDLEY_ASSIGN_OR_RETURN(const SendPlan::Answer answered, pass.Ask(SendPlan{record}));
  if (!answered) return absl::OkStatus();
  const absl::StatusOr<int64_t>& answer = *answered;
  MEDLEY_RETURN_IF_ERROR(CheckStaleLeader(pass, answer.status(), "apply the plan"));
  if (answer.status().code() == absl::StatusCode::kFailedPrecondition && observed != nullptr &&
      observed->generation >= generation) {
    // The coordinator has recovered into a newer generation meanwhile: the plan takes a newer number.
    PlanRecord renumbered = record;
    renumbered.plan.generation = NextGeneration(pass);
    MEDLEY_RETURN_IF_ERROR(StorePlan(pass, job, renumbered));
    pass.RequeueAfter(base::nanoseconds(1));
    return absl::OkStatus();
  }
  if (!answer.ok()) {
    pass.Publish(WriteLog{false, "the coordinator of " + job.key().ToString() + " has not taken the plan yet",
                          base::ToString(answer.status())});
    pass.RequeueAfter(kRefusedRetry);
    return absl::OkStatus();
  }
  state = {pass.coordinator, generation, pass.world.steady};
  pass.RequeueAfter(kSendAgain);
  return absl::OkStatus();
}

absl::Status DeleteLeftovers(Pass& pass) {
  std::set<std::string> wanted;
  for (const MemberSlot& slot : pass.memory.stored_plan.record->slots) wanted.insert(slot.member);
  const PlanRecord& record = *pass.memory.stored_plan.record;
  const std::string coordinator = record.CoordinatorPodName(pass.object.key().name);
  std::vector<kube::ObjectPtr> leftovers;
  for (const auto& [name, pod] : pass.world.pods) {
    if (pod->label(kRoleLabel) == ToString(Role::kCoordinator) && name != coordinator && name != record.successor_pod) {
      leftovers.push_back(pod);  // another one has taken over
    }
    if (wanted.contains(name) || !IsMember(*pod)) continue;
    if (WorkerHasEnded(*pod) || IsInForce(pass)) leftovers.push_back(pod);
  }
  return DeleteSome(pass, leftovers);
}

}  // namespace

bool IsInForce(const Pass& pass) {
  return pass.observed != nullptr && pass.observed->generation > 0 && pass.observed->next_generation == 0 &&
         pass.observed->plan_generation == pass.memory.stored_plan.record->plan.generation;
}

absl::Status ConnectToRunning(Pass& pass, const TrainingJob& job) {
  const kube::ObjectPtr pod = pass.Pod(pass.memory.stored_plan.record->CoordinatorPodName(job.name()));
  if (pod == nullptr || WorkerHasEnded(*pod) || IsLost(pass, *pod)) return absl::OkStatus();
  const std::string ip = pod->String("/status/podIP");
  const std::string address = ip.empty() ? "" : base::JoinHostPort(ip, pass.options.worker.listen_port);
  return address.empty() ? absl::OkStatus() : ConnectTo(pass, job, address);
}

void SendPlanAgain(Pass& pass) { pass.Own(&Memory::running).sent_generation = -1; }

void ForgetCoordinator(Pass& pass) {
  pass.Publish(Disconnect{});
  pass.coordinator.clear();
  pass.observed.reset();
  pass.Own(&Memory::running) = {"", -1, {}};
}

absl::Status CheckStaleLeader(Pass& pass, const absl::Status& refusal, const char* what) {
  const std::optional<int64_t> newer = model::NewerTerm(refusal);
  if (!newer) return absl::OkStatus();
  pass.Publish(ReportNewerTerm{*newer});
  return base::Annotate(refusal, what);
}

absl::Status CheckObservedLeader(Pass& pass) {
  const int64_t term = pass.world.leader_term;
  if (pass.observed == nullptr || pass.observed->leader_term <= term) return absl::OkStatus();
  return CheckStaleLeader(pass, model::StaleTerm(term, pass.observed->leader_term),
                          "read the coordinator's observation");
}

absl::Status RunPlan(Pass& pass, const TrainingJob& job) {
  bool over = false;
  MEDLEY_RETURN_IF_ERROR(CheckCoordinator(pass, job, &over));
  if (over) return absl::OkStatus();
  MEDLEY_RETURN_IF_ERROR(EnsureSuccessor(pass, job));
  MEDLEY_ASSIGN_OR_RETURN(const std::string coordinator, EnsureCoordinator(pass, job));
  MEDLEY_ASSIGN_OR_RETURN(over, HandleStartFailures(pass, job));
  if (over) return absl::OkStatus();
  if (HasLostToken(pass, job)) return TrainWithLostToken(pass, job);
  if (!coordinator.empty()) {
    MEDLEY_RETURN_IF_ERROR(ConnectTo(pass, job, coordinator));
    MEDLEY_RETURN_IF_ERROR(CheckObservedLeader(pass));
    if (pass.observed != nullptr) {
      RecordObservation(pass);
      RecordSize(pass);
    }
    ForgetRestartsAfterProgress(pass, job);
    MEDLEY_RETURN_IF_ERROR(CheckCoordinator(pass, job, &over));
    if (over) return absl::OkStatus();
    // Before anything is done for a plan that will not run.
    MEDLEY_ASSIGN_OR_RETURN(const bool back, LeaveRefusedPlan(pass, job));
    if (back) return absl::OkStatus();
    // Make before break: the pods of the new plan first; the plan at once, since the coordinator waits for its
    // members; the pods of the old plan are deleted only when the new one is in force.
    MEDLEY_RETURN_IF_ERROR(KeepPodGroup(pass, job));
    MEDLEY_RETURN_IF_ERROR(EnsureMembers(pass, job));
    if (pass.report.finished()) return absl::OkStatus();
    MEDLEY_RETURN_IF_ERROR(ApplyPlan(pass, job));
    MEDLEY_RETURN_IF_ERROR(DrainLeaving(pass));
  }
  if (coordinator.empty()) {
    MEDLEY_ASSIGN_OR_RETURN(const bool released, ReleaseIfCoordinatorIsStuck(pass, job));
    if (released) return absl::OkStatus();
  }
  MEDLEY_RETURN_IF_ERROR(KeepBudget(pass, job));
  MEDLEY_RETURN_IF_ERROR(DeleteLeftovers(pass));
  CheckPodsReady(pass);
  FillPlanStatus(pass);
  MEDLEY_RETURN_IF_ERROR(OfferMeasurements(pass, job));
  return pass.spec_is_valid ? Replan(pass, job) : absl::OkStatus();
}

}  // namespace medley::ops::lifecycle
