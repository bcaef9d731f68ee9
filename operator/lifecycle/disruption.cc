#include "operator/lifecycle/disruption.h"

#include <algorithm>

#include "common/base/status.h"
#include "operator/api/resources.h"
#include "operator/builders/pods.h"
#include "operator/builders/slots.h"
#include "operator/lifecycle/consider.h"
#include "operator/lifecycle/pass.h"
#include "operator/lifecycle/planning.h"
#include "operator/lifecycle/pod_state.h"
#include "operator/lifecycle/pods.h"
#include "operator/lifecycle/refusal.h"
#include "operator/lifecycle/running.h"
#include "operator/lifecycle/succession.h"

namespace medley::ops::lifecycle {
namespace {

constexpr base::nanoseconds kOverdue = base::seconds(30);   // of a deletion, after its grace period
constexpr base::nanoseconds kAskAgain = base::seconds(10);  // when no plan was found
constexpr double kShortestNotice = 30;                      // seconds, of the clouds' spot interruptions

// The coordinator has left the trainer out for a long time, and it is not as fast as usual again.
std::optional<Notice> SlowNotice(Pass& pass, const kube::Object& pod) {
  if (pass.observed == nullptr) return std::nullopt;
  const auto& left_out = pass.observed->left_out;
  const auto found = std::ranges::find(left_out, pod.key().name, &LeftOut::member);
  if (found == left_out.end()) return std::nullopt;
  const auto since = base::ParseTime(found->since);
  if (!since.ok()) return std::nullopt;
  const base::nanoseconds left = *since + pass.options.slow_patience - pass.world.now;
  if (left > base::nanoseconds(0)) {
    pass.RequeueAfter(left);
    return std::nullopt;
  }
  return Notice{Notice::Kind::kSlow, false, "slow since " + found->since};
}

struct Disrupted {
  kube::ObjectPtr pod;
  Notice notice;
};

// For a pod with a deletion timestamp.
Notice NoticeOfDeletion(Pass& pass, const kube::Object& pod) {
  const auto due = base::ParseTime(pod.String("/metadata/deletionTimestamp"));
  const base::nanoseconds left = due.ok() ? *due + kOverdue - pass.world.now : base::nanoseconds(0);
  // The kubelet does not answer: the pod stays as long as the node does.
  if (left <= base::nanoseconds(0)) return Notice{Notice::Kind::kLost, true, "deletion overdue"};
  pass.RequeueAfter(left);
  return Notice{Notice::Kind::kDisrupted, true, "deletion"};
}

std::vector<Disrupted> DisruptedMembers(Pass& pass) {
  std::vector<Disrupted> disrupted;
  for (const MemberSlot& slot : pass.memory.stored_plan.record->slots) {
    const kube::ObjectPtr pod = pass.Pod(slot.member);
    if (pod == nullptr) continue;
    if (auto notice = NoticeFor(pass, *pod)) disrupted.push_back({pod, *std::move(notice)});
  }
  return disrupted;
}

// The slots of the plan but for these, and for those whose names are lost.
std::vector<MemberSlot> SlotsWithout(Pass& pass, const std::vector<Disrupted>& disrupted) {
  std::vector<MemberSlot> slots = pass.memory.stored_plan.record->slots;
  std::erase_if(slots, [&](const MemberSlot& slot) {
    return IsNameLost(pass, slot.member) ||
           std::ranges::any_of(disrupted, [&](const Disrupted& each) { return slot.member == each.pod->key().name; });
  });
  return slots;
}

int CountOn(const std::vector<Disrupted>& disrupted, const std::string& pool) {
  return static_cast<int>(std::count_if(disrupted.begin(), disrupted.end(),
                                        [&](const Disrupted& each) { return each.pod->label(kPoolLabel) == pool; }));
}

// The reason of the worst.
Reason PublishNotices(Pass& pass, const std::vector<Disrupted>& disrupted) {
  const Notice* worst = &disrupted.front().notice;
  std::map<std::pair<std::string_view, std::string>, std::string> news;  // (reason, what will be lost): pods
  for (const Disrupted& each : disrupted) {
    if (each.notice.kind == Notice::Kind::kSpot) worst = &each.notice;
    if (!pass.Own(&Memory::disruption).published.insert(each.pod->uid() + each.notice.sign).second) continue;
    std::string& pods = news[{ToString(ReasonOf(each.notice.kind)),
                              fmt::format("node {} ({})", each.pod->String("/spec/nodeName"), each.notice.sign)}];
    pods += (pods.empty() ? "" : ", ") + each.pod->key().name;
  }
  for (const auto& [what, pods] : news) {
    pass.Warning(what.first,
                 what.first == ToString(ReasonOf(Notice::Kind::kSlow))
                     ? fmt::format("{}: pods that stay slow are replaced: {}", what.second, pods)
                     : fmt::format("{}: pods of the job will leave before they are lost: {}", what.second, pods));
  }
  return ReasonOf(worst->kind);
}

bool CanMove(JobPhase phase) {
  return phase == JobPhase::kTraining || phase == JobPhase::kPreparing || phase == JobPhase::kRecovering ||
         phase == JobPhase::kWaiting;
}

// Whether the coordinator must be notified now that the pod leaves. `noticed`: since when its loss is certain, by UID.
bool MustDrain(Pass& pass, const kube::Object& pod, std::map<std::string, base::SteadyTime>& noticed) {
  if (pod.deleting()) return true;
  const auto notice = NoticeFor(pass, pod);
  if (!notice || !notice->certain) return false;
  const auto& before = pass.memory.disruption.noticed_since;
  const auto known = before.find(pod.uid());
  const base::SteadyTime since = known == before.end() ? pass.world.steady : known->second;
  noticed[pod.uid()] = since;
  const base::nanoseconds left = since + pass.options.notice_patience - pass.world.steady;
  if (left > base::nanoseconds(0)) pass.RequeueAfter(left);
  return left <= base::nanoseconds(0);
}

// The node has not been ready for some time. This outweighs a notice: a node that is drained dies as any other.
bool IsDead(Pass& pass, const std::string& node) {
  auto& not_ready = pass.Own(&Memory::disruption).not_ready_since;
  if (!pass.world.nodes_not_ready.contains(node)) {
    not_ready.erase(node);
    return false;
  }
  const auto [since, fresh] = not_ready.emplace(node, pass.world.steady);
  const base::nanoseconds left = since->second + pass.options.schedule_window - pass.world.steady;
  if (left > base::nanoseconds(0)) pass.RequeueAfter(left);
  return left <= base::nanoseconds(0);
}

}  // namespace

std::optional<Notice> NoticeFor(Pass& pass, const kube::Object& pod) {
  if (WorkerHasEnded(pod) || pass.memory.pods.deleted.contains(pod.uid())) return std::nullopt;
  const std::string node = pod.String("/spec/nodeName");
  if (IsDead(pass, node)) return Notice{Notice::Kind::kLost, true, "not ready"};
  const auto of_node = pass.world.node_notices.find(node);
  if (of_node != pass.world.node_notices.end()) return of_node->second;
  if (auto notice = PodNoticeOf(pod)) return notice;
  if (pod.deleting()) return NoticeOfDeletion(pass, pod);
  return SlowNotice(pass, pod);
}

std::vector<std::string> NodesOfSlowTrainers(Pass& pass) {
  std::vector<std::string> nodes;
  if (pass.observed == nullptr) return nodes;
  for (const LeftOut& trainer : pass.observed->left_out) {
    const kube::ObjectPtr pod = pass.Pod(trainer.member);
    if (pod == nullptr || !SlowNotice(pass, *pod)) continue;
    const std::string node = pod->String("/spec/nodeName");
    if (!node.empty()) nodes.push_back(node);
  }
  return nodes;
}

std::vector<MemberSlot> StayingSlots(Pass& pass) { return SlotsWithout(pass, DisruptedMembers(pass)); }

absl::StatusOr<bool> Relocate(Pass& pass, const TrainingJob& job, Reason reason, size_t count,
                              const std::vector<MemberSlot>& staying) {
  PlanRecord record = *pass.memory.stored_plan.record;
  const int64_t from = record.plan.generation;
  record.plan.generation = NextGeneration(pass);
  record.slots = AssignSlots(job.name(), record.plan, staying, PodNames(pass), record.Zones());
  record.reason = reason;
  record.fallback = FallbackOf(pass);
  MEDLEY_ASSIGN_OR_RETURN(const bool reserved, ReserveUnitsFor(pass, record));
  if (!reserved) return false;
  MEDLEY_RETURN_IF_ERROR(StorePlan(pass, job, record));
  NoteReserved(pass, record);
  FillPlanStatus(pass);
  const std::string sentence = fmt::format(
      "from generation {} to generation {}: the same plan, {} of its {} pods "
      "elsewhere",
      from, record.plan.generation, count, record.slots.size());
  pass.Event("PlanAccepted", fmt::format("{}: {}", ToString(reason), sentence));
  SetCondition(pass, kRescalingCondition, ConditionStatus::kTrue, reason, sentence);
  pass.Publish(CountReplan{std::string(ToString(reason))});
  pass.RequeueAfter(base::nanoseconds(1));  // the next pass creates the pods
  return true;
}

namespace {

// The same plan with other pods, if the pools have units for them. A slow rack may have more trainers than there are
// free units: after a refusal half as many are tried, those that come first in the plan.
absl::StatusOr<bool> ReplaceSlow(Pass& pass, const TrainingJob& job, std::vector<Disrupted> slow) {
  if (!CanMove(pass.observed->phase) || pass.Lasts(pass.memory.planning.after_refusal)) return false;
  MEDLEY_ASSIGN_OR_RETURN(const PoolChoice choice, FindUsablePools(pass, job));
  if (choice.refusal || !PlanFits(pass, choice.pools)) return false;
  std::optional<size_t>& most = pass.Own(&Memory::disruption).most_slow;
  while (most && slow.size() > *most) slow.pop_back();
  MEDLEY_ASSIGN_OR_RETURN(const bool moves,
                          Relocate(pass, job, ReasonOf(Notice::Kind::kSlow), slow.size(), SlotsWithout(pass, slow)));
  if (moves) {
    most.reset();
    PublishNotices(pass, slow);
  } else {
    most = std::max<size_t>(1, slow.size() / 2);
  }
  return moves;
}

}  // namespace

absl::StatusOr<bool> EvacuateNodes(Pass& pass, const TrainingJob& job) {
  auto& asked_at = pass.Own(&Memory::disruption).evacuation_asked_at;
  const std::vector<Disrupted> disrupted = DisruptedMembers(pass);
  if (disrupted.empty()) {
    asked_at.reset();
    pass.Own(&Memory::disruption).most_slow.reset();
    DropSearch(pass, true);
    return false;
  }
  // The job trains on without a slow trainer, so nothing but a free unit is a reason to move.
  const bool only_slow =
      std::ranges::all_of(disrupted, [](const Disrupted& each) { return each.notice.kind == Notice::Kind::kSlow; });
  if (only_slow) return ReplaceSlow(pass, job, disrupted);
  const Reason reason = PublishNotices(pass, disrupted);
  if (!CanMove(pass.observed->phase)) return false;
  MEDLEY_ASSIGN_OR_RETURN(const PoolChoice choice, FindUsablePools(pass, job));
  if (choice.refusal) {
    PublishUnplanned(pass, *choice.refusal);
    return false;
  }
  const int64_t before = pass.memory.stored_plan.record->plan.generation;
  const auto has_moved = [&] { return pass.memory.stored_plan.record->plan.generation != before; };
  // Before anything that may have to wait: the answer is kept for a pass or two only.
  if (const auto& search = pass.memory.search.pending; search && search->evacuates) {
    MEDLEY_RETURN_IF_ERROR(ContinueSearch(pass, job));
    if (!pass.memory.search.pending) asked_at = pass.world.steady;
    return has_moved();
  }
  const bool can_relocate = std::none_of(disrupted.begin(), disrupted.end(), [&](const Disrupted& each) {
    return IsSetAside(pass, each.pod->label(kPoolLabel));
  });
  bool crowded = false;  // no unit is free beside those that will be lost
  if (can_relocate && PlanFits(pass, choice.pools)) {
    // While the pause after a refusal lasts, another plan may still fit: pods on a dead node hold their units.
    if (!pass.Lasts(pass.memory.planning.after_refusal)) {
      MEDLEY_ASSIGN_OR_RETURN(const bool relocated, Relocate(pass, job, reason, disrupted.size(), StayingSlots(pass)));
      if (relocated) return true;
    }
    crowded = true;
  }
  if (!job.elasticity.enabled) return false;
  const base::SteadyTime now = pass.world.steady;
  if (asked_at && now - *asked_at < kAskAgain) {
    pass.RequeueAfter(*asked_at + kAskAgain - now);
    return false;
  }
  asked_at = now;
  MEDLEY_ASSIGN_OR_RETURN(ProfiledPools profiled, FindProfiledPools(pass, job, choice.pools));
  if (!profiled.profile) return false;
  const PlanningInputs seen = InputsOf(job, profiled.pools);
  for (PoolView& view : profiled.pools.pools) {
    if (crowded || IsSetAside(pass, view.pool.name)) view.units -= CountOn(disrupted, view.pool.name);
  }
  MEDLEY_RETURN_IF_ERROR(Consider(pass, job, {reason, true, InputsOf(job, profiled.pools), seen, true}, profiled));
  if (!has_moved()) pass.RequeueAfter(kAskAgain);
  return has_moved();
}

void ForgetDrained(Pass& pass) { pass.Own(&Memory::disruption).drained.clear(); }

absl::Status DrainLeaving(Pass& pass) {
  std::set<std::string> in_plan;
  for (const MemberSlot& slot : pass.memory.stored_plan.record->slots) in_plan.insert(slot.member);
  std::vector<std::string> leaving;
  std::vector<std::string> uids;
  std::map<std::string, base::SteadyTime> noticed;
  double notice = kShortestNotice;
  for (const auto& [name, pod] : pass.world.pods) {
    const bool released = !in_plan.contains(name) && IsInForce(pass);
    if (!IsMember(*pod) || WorkerHasEnded(*pod) || released || !Follows(pass, *pod)) continue;
    if (!MustDrain(pass, *pod, noticed)) continue;
    if (pass.memory.disruption.drained.contains(pod->uid())) continue;
    leaving.push_back(name);
    uids.push_back(pod->uid());
    const kube::Json& grace = pod->At("/metadata/deletionGracePeriodSeconds");
    if (grace.is_number()) notice = std::min(notice, grace.get<double>());
  }
  pass.Own(&Memory::disruption).noticed_since = std::move(noticed);
  if (leaving.empty()) return absl::OkStatus();
  MEDLEY_ASSIGN_OR_RETURN(const DrainMembers::Answer drained,
                          pass.Ask(DrainMembers{leaving, base::FromSeconds(notice)}));
  if (!drained) return absl::OkStatus();
  pass.Own(&Memory::disruption).drained.insert(uids.begin(), uids.end());
  if (!drained->ok()) {
    pass.Publish(WriteLog{true, "the coordinator of " + pass.object.key().ToString() + " did not take a drain",
                          base::ToString(*drained)});
  }
  return absl::OkStatus();
}

}  // namespace medley::ops::lifecycle
