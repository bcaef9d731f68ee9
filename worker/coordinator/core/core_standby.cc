// CoordinatorCore: slow trainers stand by until they are as fast as usual again
// (docs/adr/0026-slow-members-stand-by.md).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

#include "common/model/convert.h"
#include "worker/coordinator/core/core.h"

namespace medley::worker {
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

bool CoordinatorCore::StandsBy(const std::string& member) const {
  const auto found = state_.members.all.find(member);
  const Standby* standby = state_.standing_by.standbys.Find(member);
  return found != state_.members.all.end() && standby != nullptr && !standby->may_return && !found->second.released &&
         standby->record.instance() == found->second.hello.instance();
}

void CoordinatorCore::RestoreStandbys(const job::v1::CoordinatorState& journal, Instant now) {
  state_.standing_by.standbys.Restore(journal, now.steady);
  const plan::v1::ExecutionPlan& plan = journal.active().plan();
  for (const job::v1::StandbyRecord& record : journal.standbys()) {
    if (record.stage() < 0 || record.stage() >= plan.stages_size()) continue;
    state_.standing_by.slow.Restore(PolicyOf(plan),
                                    {record.member(), record.instance(), record.pool(), record.stage(), record.share(),
                                     OperationsOf(plan.stages(record.stage()))},
                                    record.usual_seconds());
  }
}

// The generation in force begins to train.
void CoordinatorCore::BeginSlowMembers() {
  std::vector<TrainerPlace> places = PlacesOf(state_.generations.active->plan, state_.generations.active->peers);
  std::erase_if(places,
                [&](const TrainerPlace& place) { return !state_.generations.active->members.contains(place.member); });
  state_.standing_by.slow.Begin(
      PolicyOf(state_.generations.active->plan), std::move(places),
      [&](const std::string& member) { return state_.standing_by.standbys.Find(member) != nullptr; });
}

// Whoever writes a checkpoint meanwhile is not slow.
void CoordinatorCore::AddStepTime(const GenerationMember& member, double seconds, Instant now) {
  const std::string& name = member.peer.slot().member();
  if (!state_.checkpoints.pending || !state_.checkpoints.pending->waiting.contains(name))
    state_.standing_by.slow.Add(name, seconds, now.steady);
}

// Marks the trainers that are to be left out next. They are planned out by ConsiderSamePlan, or by a recovery before.
void CoordinatorCore::MarkSlowMembers(Instant now) {
  std::map<int, int> standing_by;  // by stage
  for (const auto& [name, standby] : state_.standing_by.standbys.all()) {
    const job::v1::MemberSlot* slot = SlotOf(state_.generations.active->request, name);
    if (slot != nullptr && StandsBy(name) && !state_.generations.active->members.contains(name))
      ++standing_by[slot->stage()];
    if (state_.generations.active->members.contains(name)) return;  // those that are marked first
  }
  const std::vector<TrainerPlace> places = PlacesOf(state_.generations.active->plan, state_.generations.active->peers);
  for (const SlowTrainer& slow : state_.standing_by.slow.ToLeaveOut(standing_by, now.steady)) {
    const GenerationMember& member = state_.generations.active->members.at(slow.member);
    const ConnectedMember* connected = Connected(member.peer);
    if (connected == nullptr || connected->leaving) continue;
    const auto place = std::ranges::find(places, slow.member, &TrainerPlace::member);
    state_.standing_by.standbys.Add(RecordOf(slow, member.peer, place == places.end() ? 1 : place->share, now.wall),
                                    now.steady);
  }
}

// Plans out the marked trainers of the generation in force. `fit`: the members of the next one. Returns whether it did.
bool CoordinatorCore::LeaveOutSlow(const RosterFit& fit, Instant now) {
  std::vector<job::v1::StandbyRecord> marked;  // those that slowed down most first
  for (const auto& [name, standby] : state_.standing_by.standbys.all()) {
    if (state_.generations.active->members.contains(name)) marked.push_back(standby.record);
  }
  std::ranges::stable_sort(marked, std::greater(), SlowdownOf);
  std::erase_if(marked, [&](const job::v1::StandbyRecord& record) {
    const bool used = std::ranges::any_of(
        fit.peers, [&](const job::v1::Peer& peer) { return peer.slot().member() == record.member(); });
    if (used || !fit.covers)
      state_.standing_by.standbys.Remove(record.member(), now.steady);  // the others cannot train without it
    return used || !fit.covers;
  });
  if (marked.empty()) return false;
  StartGeneration(state_.generations.active->request, fit, job::v1::STATE_ORIGIN_PEERS,
                  {job::v1::SWITCH_CAUSE_MEMBER_SLOW, LeftOutText(marked), marked.front().member()}, now);
  return true;
}

// Why a member takes part that the generation in force does not have.
Cause CoordinatorCore::ReturnCause(const std::string& newcomer) const {
  const Standby* standby = state_.standing_by.standbys.Find(newcomer);
  if (standby == nullptr || !standby->may_return) {
    return {job::v1::SWITCH_CAUSE_MEMBER_RETURNED, newcomer + " came back", newcomer};
  }
  return {job::v1::SWITCH_CAUSE_STANDBY_RETURNED,
          fmt::format("Took trainer {} back: a step would take it {}, usually {}.", newcomer,
                      TimeText(standby->seconds), TimeText(standby->record.usual_seconds())),
          newcomer};
}

// A generation is in force: members with a part in it do not stand by, and those without a slot in any plan leave.
void CoordinatorCore::UpdateStandbys(Instant now) {
  std::vector<std::string> back, gone;
  for (const auto& [name, standby] : state_.standing_by.standbys.all()) {
    if (state_.generations.active->members.contains(name)) {
      back.push_back(name);
    } else if (SlotOf(state_.generations.active->request, name) == nullptr &&
               SlotOf(*state_.plans.desired, name) == nullptr) {
      gone.push_back(name);
    }
  }
  for (const std::string& name : back) state_.standing_by.standbys.Remove(name, now.steady);
  for (const std::string& name : gone) ReleaseStandby(name, "the new generation has no place for this member", now);
}

void CoordinatorCore::ReleaseStandby(const std::string& member, const std::string& why, Instant now) {
  const auto found = state_.members.all.find(member);
  if (found != state_.members.all.end() && !found->second.released &&
      state_.standing_by.standbys.Has(member, found->second.hello.instance())) {
    found->second.released = true;
    job::v1::SessionResponse release;
    release.mutable_release()->set_reason(why);
    commands_.push_back(SendCommand{member, found->second.hello.instance(), std::move(release)});
  }
  state_.standing_by.standbys.Remove(member, now.steady);
}

void CoordinatorCore::OnProbed(const std::string& member, const job::v1::Probed& probed, Instant now) {
  const Standby* standby = state_.standing_by.standbys.Find(member);
  if (standby == nullptr) return;
  if (!probed.error().empty()) Log(true, fmt::format("{} cannot measure how fast it is: {}", member, probed.error()));
  const job::v1::MemberSlot* slot =
      state_.generations.active ? SlotOf(state_.generations.active->request, member) : nullptr;
  const double slowness = slot == nullptr ? 1 : state_.standing_by.slow.Reference(slot->stage(), slot->pool(), member);
  state_.standing_by.standbys.OnProbed(member, probed, slowness, now.steady);
}

// Between generations nobody is probed: members that prepare one have other work.
void CoordinatorCore::SendProbes(Instant now) {
  if (state_.generations.mode != Mode::kTraining || state_.generations.next || state_.hand_over.successor ||
      state_.ending.suspending)
    return;
  std::map<std::string, std::string> connected;
  for (const auto& [name, standby] : state_.standing_by.standbys.all()) {
    const auto found = state_.members.all.find(name);
    if (found == state_.members.all.end() || found->second.released ||
        state_.generations.active->members.contains(name))
      continue;
    connected[name] = found->second.hello.instance();
  }
  for (const DueProbe& probe : state_.standing_by.standbys.Due(connected, now.steady)) {
    job::v1::SessionResponse message;
    message.mutable_probe()->set_id(probe.id);
    message.mutable_probe()->set_count(state_.options.batch_size);
    const job::v1::StandbyRecord& record = state_.standing_by.standbys.Find(probe.member)->record;
    message.mutable_probe()->set_pause_seconds(state_.meters.stage_times.CommSeconds(record.stage(), record.pool()));
    commands_.push_back(SendCommand{probe.member, probe.instance, std::move(message)});
  }
}

void CoordinatorCore::FillLeftOut(job::v1::Observation& out) const {
  for (const auto& [name, standby] : state_.standing_by.standbys.all()) {
    if (!state_.members.all.contains(name) ||
        (state_.generations.active && state_.generations.active->members.contains(name)))
      continue;
    job::v1::LeftOutMember& member = *out.add_left_out();
    member.set_member(name);
    member.set_reason(LeftOutText(standby.record));
    *member.mutable_since() = standby.record.since();
    member.set_probe_seconds(standby.seconds);
  }
}

}  // namespace medley::worker
