#include "worker/coordinator/core/standing_by.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <utility>

#include "common/model/convert.h"
#include "common/model/execution_plan.h"
#include "common/model/synchronisation.h"
#include "worker/coordinator/core/state.h"

namespace medley::worker::standing_by {
namespace {

std::string TimeText(double seconds) {
  return seconds < 1 ? fmt::format("{:.1f} ms", seconds * 1000) : fmt::format("{:.2f} s", seconds);
}

std::string LeftOutText(const job::v1::StandbyRecord& record) {
  return fmt::format("Left out trainer {}: {}.", record.member(), record.reason());
}

// At most three of them by name.
std::string LeftOutText(const std::vector<job::v1::StandbyRecord>& records) {
  constexpr size_t kNamed = 3;
  if (records.size() == 1) return LeftOutText(records.front());
  std::vector<std::string> named;
  for (const job::v1::StandbyRecord& record : records) {
    if (named.size() < kNamed) named.push_back(fmt::format("{} ({})", record.member(), record.reason()));
  }
  const size_t others = records.size() - named.size();
  return fmt::format("Left out {} trainers: {}{}.", records.size(), fmt::join(named, ", "),
                     others == 0 ? "" : fmt::format(" and {} more", others));
}

job::v1::StandbyRecord RecordOf(const SlowTrainer& slow, const job::v1::Peer& peer, double share, base::WallTime wall) {
  job::v1::StandbyRecord record;
  record.set_member(slow.member);
  record.set_instance(peer.instance());
  record.set_pool(peer.slot().pool());
  record.set_stage(peer.slot().stage());
  record.set_usual_seconds(slow.usual);
  record.set_recent_seconds(slow.recent);
  record.set_share(share);
  record.set_reason(fmt::format("a step took it {}, usually {}", TimeText(slow.recent), TimeText(slow.usual)));
  const int64_t nanos = std::chrono::duration_cast<base::nanoseconds>(wall.time_since_epoch()).count();
  record.mutable_since()->set_seconds(nanos / 1'000'000'000);
  record.mutable_since()->set_nanos(static_cast<int32_t>(nanos % 1'000'000'000));
  return record;
}

double SlowdownOf(const job::v1::StandbyRecord& record) {
  return record.usual_seconds() > 0 ? record.recent_seconds() / record.usual_seconds() : 0;
}

// One policy holds for the whole plan (common/model/executable.h).
AnomalyPolicy PolicyOf(const plan::v1::ExecutionPlan& plan) {
  const absl::StatusOr<model::ExecutionPlan> parsed = model::FromProto(plan);
  if (!parsed.ok()) return {};
  for (const model::Stage& stage : parsed->stages) {
    for (const model::OperationSync& sync : stage.syncs) {
      if (sync.sync.detector == model::AnomalyDetector::kOff) continue;
      return {sync.sync.detector, sync.sync.anomaly_window, sync.sync.anomaly_threshold};
    }
  }
  return {};
}

std::string OperationsOf(const plan::v1::Stage& stage) {
  std::string text;
  for (const plan::v1::OperationRange& range : stage.operations()) {
    text += fmt::format("{}-{};", range.first(), range.end());
  }
  return text;
}

std::vector<TrainerPlace> PlacesOf(const plan::v1::ExecutionPlan& plan, const std::vector<job::v1::Peer>& peers) {
  std::vector<TrainerPlace> places;
  for (const job::v1::Peer& peer : peers) {
    const job::v1::MemberSlot& slot = peer.slot();
    if (slot.role() != job::v1::MEMBER_ROLE_TRAINER || slot.stage() >= plan.stages_size()) continue;
    const plan::v1::Stage& stage = plan.stages(slot.stage());
    for (const plan::v1::Group& group : stage.groups()) {
      if (group.pool() != slot.pool()) continue;
      places.push_back({slot.member(), peer.instance(), slot.pool(), slot.stage(),
                        group.share() / std::max(1, group.units()), OperationsOf(stage)});
    }
  }
  return places;
}

const job::v1::MemberSlot* SlotOf(const job::v1::ApplyPlanRequest& request, const std::string& member) {
  const auto found = std::ranges::find_if(request.slots(), [&](const auto& slot) { return slot.member() == member; });
  return found == request.slots().end() ? nullptr : &*found;
}

}  // namespace

bool StandsBy(const CoreState& view, const std::string& member) {
  const ConnectedMember* connected = members::Find(view.members, member);
  const Standby* standby = view.standing_by.standbys.Find(member);
  return connected != nullptr && standby != nullptr && !standby->may_return && !connected->released &&
         standby->record.instance() == connected->hello.instance();
}

bool IsToRelease(const CoreState& view, const std::string& member) {
  const ConnectedMember* connected = members::Find(view.members, member);
  return connected != nullptr && !connected->released &&
         view.standing_by.standbys.Has(member, connected->hello.instance());
}

Cause WhyReturned(const StandingByState& state, const std::string& newcomer) {
  const Standby* standby = state.standbys.Find(newcomer);
  if (standby == nullptr || !standby->may_return) {
    return {job::v1::SWITCH_CAUSE_MEMBER_RETURNED, newcomer + " came back", newcomer};
  }
  return {job::v1::SWITCH_CAUSE_STANDBY_RETURNED,
          fmt::format("Took trainer {} back: a step would take it {}, usually {}.", newcomer,
                      TimeText(standby->seconds), TimeText(standby->record.usual_seconds())),
          newcomer};
}

void FillLeftOut(const CoreState& view, job::v1::Observation& out) {
  const std::optional<GenerationInfo>& active = view.generations.active;
  for (const auto& [name, standby] : view.standing_by.standbys.all()) {
    if (members::Find(view.members, name) == nullptr || (active && active->members.contains(name))) continue;
    job::v1::LeftOutMember& member = *out.add_left_out();
    member.set_member(name);
    member.set_reason(LeftOutText(standby.record));
    *member.mutable_since() = standby.record.since();
    member.set_probe_seconds(standby.seconds);
  }
}

void Restore(StandingByState& own, const job::v1::CoordinatorState& journal, base::SteadyTime now) {
  own.standbys.Restore(journal, now);
  const plan::v1::ExecutionPlan& plan = journal.active().plan();
  for (const job::v1::StandbyRecord& record : journal.standbys()) {
    if (record.stage() < 0 || record.stage() >= plan.stages_size()) continue;
    own.slow.Restore(PolicyOf(plan),
                     {record.member(), record.instance(), record.pool(), record.stage(), record.share(),
                      OperationsOf(plan.stages(record.stage()))},
                     record.usual_seconds());
  }
}

void OnSession(StandingByState& own, const job::v1::Hello& hello, base::SteadyTime now) {
  if (!own.standbys.Has(hello.member(), hello.instance())) own.standbys.Remove(hello.member(), now);
  own.standbys.OnSession(hello.member());
}

void Remove(StandingByState& own, const std::string& member, base::SteadyTime now) { own.standbys.Remove(member, now); }

void Begin(StandingByState& own, const CoreState& view) {
  const GenerationInfo& active = *view.generations.active;
  std::vector<TrainerPlace> places = PlacesOf(active.plan, active.peers);
  std::erase_if(places, [&](const TrainerPlace& place) { return !active.members.contains(place.member); });
  own.slow.Begin(PolicyOf(active.plan), std::move(places),
                 [&](const std::string& member) { return own.standbys.Find(member) != nullptr; });
}

std::vector<std::string> Update(StandingByState& own, const CoreState& view, base::SteadyTime now) {
  const GenerationInfo& active = *view.generations.active;
  std::vector<std::string> back, placeless;
  for (const auto& [name, standby] : own.standbys.all()) {
    if (active.members.contains(name)) {
      back.push_back(name);
    } else if (SlotOf(active.request, name) == nullptr && SlotOf(*view.plans.desired, name) == nullptr) {
      placeless.push_back(name);
    }
  }
  for (const std::string& name : back) own.standbys.Remove(name, now);
  return placeless;
}

// Whoever writes a checkpoint meanwhile is not slow.
void AddStepTime(StandingByState& own, const CoreState& view, const std::string& member, double seconds,
                 base::SteadyTime now) {
  const std::optional<PendingCheckpoint>& checkpoint = view.checkpoints.pending;
  if (!checkpoint || !checkpoint->waiting.contains(member)) own.slow.Add(member, seconds, now);
}

void MarkSlow(StandingByState& own, const CoreState& view, Instant now) {
  const GenerationInfo& active = *view.generations.active;
  std::map<int, int> standing_by;  // by stage
  for (const auto& [name, standby] : own.standbys.all()) {
    const job::v1::MemberSlot* slot = SlotOf(active.request, name);
    if (slot != nullptr && StandsBy(view, name) && !active.members.contains(name)) ++standing_by[slot->stage()];
    if (active.members.contains(name)) return;  // those that are marked first
  }
  const std::vector<TrainerPlace> places = PlacesOf(active.plan, active.peers);
  for (const SlowTrainer& slow : own.slow.ToLeaveOut(standing_by, now.steady)) {
    const GenerationMember& member = active.members.at(slow.member);
    const ConnectedMember* connected = members::Connected(view.members, member.peer);
    if (connected == nullptr || connected->leaving) continue;
    const auto place = std::ranges::find(places, slow.member, &TrainerPlace::member);
    own.standbys.Add(RecordOf(slow, member.peer, place == places.end() ? 1 : place->share, now.wall), now.steady);
  }
}

Request LeaveOut(StandingByState& own, const CoreState& view, const RosterFit& fit, base::SteadyTime now) {
  const GenerationInfo& active = *view.generations.active;
  std::vector<job::v1::StandbyRecord> marked;  // those that slowed down most first
  for (const auto& [name, standby] : own.standbys.all()) {
    if (active.members.contains(name)) marked.push_back(standby.record);
  }
  std::ranges::stable_sort(marked, std::greater(), SlowdownOf);
  std::erase_if(marked, [&](const job::v1::StandbyRecord& record) {
    const bool used = std::ranges::any_of(
        fit.peers, [&](const job::v1::Peer& peer) { return peer.slot().member() == record.member(); });
    if (used || !fit.covers) own.standbys.Remove(record.member(), now);  // the others cannot train without it
    return used || !fit.covers;
  });
  if (marked.empty()) return {};
  return PrepareRequest{active.request,
                        fit,
                        job::v1::STATE_ORIGIN_PEERS,
                        {job::v1::SWITCH_CAUSE_MEMBER_SLOW, LeftOutText(marked), marked.front().member()}};
}

void OnProbed(StandingByState& own, const CoreState& view, const std::string& member, const job::v1::Probed& probed,
              base::SteadyTime now, Effects& out) {
  if (own.standbys.Find(member) == nullptr) return;
  if (!probed.error().empty()) {
    out.Log(true, fmt::format("{} cannot measure how fast it is: {}", member, probed.error()));
  }
  const std::optional<GenerationInfo>& active = view.generations.active;
  const job::v1::MemberSlot* slot = active ? SlotOf(active->request, member) : nullptr;
  const double slowness = slot == nullptr ? 1 : own.slow.Reference(slot->stage(), slot->pool(), member);
  own.standbys.OnProbed(member, probed, slowness, now);
}

// Between generations nobody is probed: members that prepare one have other work.
void SendProbes(StandingByState& own, const CoreState& view, base::SteadyTime now, Effects& out) {
  const GenerationsState& generations = view.generations;
  if (generations.mode != Mode::kTraining || generations.next || view.hand_over.successor || view.ending.suspending) {
    return;
  }
  std::map<std::string, std::string> connected;
  for (const auto& [name, standby] : own.standbys.all()) {
    const ConnectedMember* member = members::Find(view.members, name);
    if (member == nullptr || member->released || generations.active->members.contains(name)) continue;
    connected[name] = member->hello.instance();
  }
  for (const DueProbe& probe : own.standbys.Due(connected, now)) {
    job::v1::SessionResponse message;
    message.mutable_probe()->set_id(probe.id);
    message.mutable_probe()->set_count(view.options.batch_size);
    const job::v1::StandbyRecord& record = own.standbys.Find(probe.member)->record;
    message.mutable_probe()->set_pause_seconds(view.meters.stage_times.CommSeconds(record.stage(), record.pool()));
    out.Add(SendCommand{probe.member, probe.instance, std::move(message)});
  }
}

}  // namespace medley::worker::standing_by
