// Leaving nodes that go: what of the job runs there moves before it dies.
//
//   notice -> the same plan on other nodes, when there is room for it (no question, no delay)
//          -> else another plan, without these nodes, whatever it saves and whenever the last was
//          -> else the coordinator is told in time, so that a checkpoint makes the loss cheap
//
// New pods are made first; those that go leave when the new generation is in force, as in every rescale.
#include <algorithm>
#include <set>

#include "common/base/log.h"
#include "common/base/status.h"
#include "operator/api/resources.h"
#include "operator/builders/pods.h"
#include "operator/controllers/job_pass.h"
#include "operator/controllers/pod_state.h"

namespace medley::ops {
namespace {

constexpr base::nanoseconds kOverdue = base::seconds(30);   // of a deletion, after its grace
constexpr base::nanoseconds kAskAgain = base::seconds(10);  // where no plan was found
constexpr double kNoticeSeconds = 30;                       // least notice of the clouds

}  // namespace

std::optional<Notice> JobPass::NoticeFor(const kube::Object& pod) {
  if (HasEnded(pod) || memory_.deleted.contains(pod.uid())) return std::nullopt;
  const std::string node = pod.String("/spec/nodeName");
  if (auto notice = deps_.capacity.NoticeOf(node)) return notice;
  if (auto notice = PodNoticeOf(pod)) return notice;
  if (pod.deleting()) {
    // Its kubelet does not answer: the pod stays as long as the node does.
    const auto due = base::ParseTime(pod.String("/metadata/deletionTimestamp"));
    const base::nanoseconds left = due.ok() ? *due + kOverdue - now_ : base::nanoseconds(0);
    if (left <= base::nanoseconds(0)) return Notice{Notice::Kind::kLost, true, "deletion overdue"};
    Again(left);
    return Notice{Notice::Kind::kDisrupted, true, "deletion"};
  }
  if (!deps_.capacity.IsDown(node)) {
    memory_.down_since.erase(node);
    return std::nullopt;
  }
  const auto [since, fresh] = memory_.down_since.emplace(node, steady_);
  const base::nanoseconds left = since->second + deps_.options.schedule_window - steady_;
  if (left <= base::nanoseconds(0)) return Notice{Notice::Kind::kLost, true, "not ready"};
  Again(left);
  return std::nullopt;
}

std::vector<JobPass::Doomed> JobPass::DoomedMembers() {
  std::vector<Doomed> doomed;
  for (const MemberSlot& slot : record_->slots) {
    const kube::ObjectPtr pod = Pod(slot.member);
    if (pod == nullptr) continue;
    if (auto notice = NoticeFor(*pod)) doomed.push_back({pod, *std::move(notice)});
  }
  return doomed;
}

// Slots that another plan may keep.
std::vector<MemberSlot> JobPass::StayingSlots() {
  std::vector<MemberSlot> staying = record_->slots;
  const std::vector<Doomed> doomed = DoomedMembers();
  std::erase_if(staying, [&](const MemberSlot& slot) {
    return std::any_of(doomed.begin(), doomed.end(), [&](const Doomed& d) { return d.pod->key().name == slot.member; });
  });
  return staying;
}

std::string JobPass::TellNotices(const std::vector<Doomed>& doomed) {
  const Notice* worst = &doomed.front().notice;
  std::map<std::pair<std::string, std::string>, std::string> news;  // (reason, what goes): pods
  for (const Doomed& each : doomed) {
    if (each.notice.kind == Notice::Kind::kSpot) worst = &each.notice;
    if (!memory_.told_notices.insert(each.pod->uid() + each.notice.sign).second) continue;
    std::string& pods = news[{ReasonOf(each.notice.kind),
                              fmt::format("node {} ({})", each.pod->String("/spec/nodeName"), each.notice.sign)}];
    pods += (pods.empty() ? "" : ", ") + each.pod->key().name;
  }
  for (const auto& [what, pods] : news) {
    Event(EventRecorder::Type::kWarning, what.first,
          fmt::format("{}: pods of the job shall leave before they are lost: {}", what.second, pods));
  }
  return ReasonOf(worst->kind);
}

absl::StatusOr<bool> JobPass::LeaveNodes() {
  const std::vector<Doomed> doomed = DoomedMembers();
  if (doomed.empty()) {
    memory_.leave_asked_at.reset();
    return false;
  }
  const std::string reason = TellNotices(doomed);
  const bool trains = observed_->phase == JobPhase::kTraining || observed_->phase == JobPhase::kPreparing ||
                      observed_->phase == JobPhase::kRecovering || observed_->phase == JobPhase::kWaiting;
  if (!trains) return false;
  const std::optional<Pools> pools = UsablePools();
  SetCondition(kPlannedCondition, ConditionStatus::kTrue, "PlanFound",
               model::Summary(record_->plan, record_->layer_names));
  if (!pools) return false;
  if (Fits(*pools)) {
    MEDLEY_RETURN_IF_ERROR(Relocate(reason, doomed.size()));
    return true;
  }
  if (!job_->elasticity.enabled) return false;
  if (memory_.leave_asked_at && steady_ - *memory_.leave_asked_at < kAskAgain) {
    Again(*memory_.leave_asked_at + kAskAgain - steady_);
    return false;
  }
  memory_.leave_asked_at = steady_;
  const int64_t before = record_->plan.generation;
  MEDLEY_RETURN_IF_ERROR(Consider(reason, true, *pools, InputsOf(*pools)));
  if (record_->plan.generation == before) Again(kAskAgain);
  return record_->plan.generation != before;
}

absl::Status JobPass::Relocate(const std::string& reason, size_t count) {
  PlanRecord record = *record_;
  const int64_t from = record.plan.generation;
  record.plan.generation = std::max({from, observed_->generation, observed_->next_generation}) + 1;
  std::vector<std::string> names;
  for (const kube::ObjectPtr& pod : Pods()) names.push_back(pod->key().name);
  record.slots = AssignSlots(job_->name(), record.plan, StayingSlots(), names, record.Zones());
  record.reason = reason;
  MEDLEY_RETURN_IF_ERROR(SaveRecord(record));
  FillPlanStatus();
  const std::string sentence =
      fmt::format("from generation {} to generation {}: the same plan, {} of its {} pods elsewhere", from,
                  record.plan.generation, count, record.slots.size());
  Event(EventRecorder::Type::kNormal, "PlanAccepted", reason + ": " + sentence);
  SetCondition(kRescalingCondition, ConditionStatus::kTrue, reason, sentence);
  deps_.metrics.CountReplan(reason);
  Again(base::nanoseconds(1));  // the next pass makes the pods
  return absl::OkStatus();
}

// The coordinator plans leaving members out at the next boundary, or takes a checkpoint at once
// where it cannot do without them.
void JobPass::DrainLeaving() {
  std::set<std::string> in_plan;
  for (const MemberSlot& slot : record_->slots) in_plan.insert(slot.member);
  std::vector<std::string> leaving;
  std::map<std::string, base::SteadyTime> since;
  double grace = kNoticeSeconds;
  for (const kube::ObjectPtr& pod : Pods()) {
    const std::string name = pod->key().name;
    const bool released = !in_plan.contains(name) && InForce();
    if (!IsMember(*pod) || HasEnded(*pod) || released) continue;
    if (CoordinatorOf(*pod) != link_->address()) continue;
    bool told = pod->deleting();
    if (const auto notice = NoticeFor(*pod); !told && notice && notice->certain) {
      const auto before = memory_.notice_since.find(pod->uid());
      since[pod->uid()] = before == memory_.notice_since.end() ? steady_ : before->second;
      const base::nanoseconds left = since[pod->uid()] + deps_.options.notice_patience - steady_;
      told = left <= base::nanoseconds(0);
      if (!told) Again(left);
    }
    if (!told || !memory_.drained.insert(pod->uid()).second) continue;
    leaving.push_back(name);
    const kube::Json& seconds = pod->At("/metadata/deletionGracePeriodSeconds");
    if (seconds.is_number()) grace = std::min(grace, seconds.get<double>());
  }
  memory_.notice_since = std::move(since);
  if (leaving.empty()) return;
  const absl::Status told = link_->Drain(leaving, base::FromSeconds(grace), deps_.leader_term(), stop_);
  if (!told.ok()) log::Warn("drain", {{"job", job_->key().ToString()}, {"error", base::ToString(told)}});
}

}  // namespace medley::ops
