#include "worker/coordinator/core/rebuilding.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "worker/coordinator/core/state.h"

namespace medley::worker::rebuilding {
namespace {

using job::v1::MEMBER_ROLE_SERVER;

int ServersOf(const std::vector<job::v1::Peer>& peers) {
  return static_cast<int>(
      std::ranges::count_if(peers, [](const auto& peer) { return peer.slot().role() == MEMBER_ROLE_SERVER; }));
}

std::vector<int> LostShards(const GenerationInfo& active) {
  std::vector<int> lost;
  for (const job::v1::Peer& peer : active.peers) {
    const bool alive = active.members.contains(peer.slot().member());
    if (peer.slot().role() == MEMBER_ROLE_SERVER && !alive) lost.push_back(peer.slot().index());
  }
  return lost;
}

// The last step up to which the survivors keep every push after `after_step`, which it is if they lack the next one.
int64_t KeptUpTo(const GenerationInfo& active, int shards, int64_t after_step, int64_t to_step) {
  std::vector<const job::v1::KeptPushes*> all;
  for (const auto& [name, member] : active.members) {
    for (const job::v1::KeptPushes& kept : member.pushes) {
      if (kept.shards() == shards) all.push_back(&kept);
    }
  }
  int64_t at = after_step;
  while (at < to_step) {
    // Whoever has the step says how many pushed it; then all of them must have it.
    int64_t last = to_step;
    int trainers = 0;
    std::set<int> ranks;
    for (const job::v1::KeptPushes* kept : all) {
      if (kept->first_step() > at + 1 || kept->last_step() < at + 1) continue;
      if (trainers == 0) trainers = kept->trainers();
      if (kept->trainers() != trainers || kept->trainer() < 0 || kept->trainer() >= trainers) continue;
      ranks.insert(kept->trainer());
      last = std::min(last, kept->last_step());
    }
    if (trainers <= 0 || std::ssize(ranks) < trainers) return at;
    at = last;
  }
  return at;
}

std::string NameOf(int64_t step) {
  return step == 0 ? "the seed, because no checkpoint is complete yet,"
                   : fmt::format("the checkpoint of step {}", step);
}

}  // namespace

bool LacksOnlyRows(const GenerationInfo& active) {
  std::set<std::string> survivors;
  for (const auto& [name, member] : active.members) survivors.insert(name);
  for (const job::v1::Peer& peer : active.peers) {
    if (peer.slot().role() == MEMBER_ROLE_SERVER) survivors.insert(peer.slot().member());
  }
  return StateSurvives(active.plan, active.peers, survivors);
}

std::variant<job::v1::Rebuild, std::string> Plan(const CoreState& view, int64_t to_step) {
  const GenerationInfo& active = *view.generations.active;
  const CheckpointsState& checkpoints = view.checkpoints;
  if (!LacksOnlyRows(active)) return "trainers with a part of the state are lost, too";
  const RebuildingState& own = view.rebuilding;
  if (own.failed && own.failed_folder == checkpoints.last_folder) return own.why;
  const int servers = ServersOf(active.peers);
  const int wanted = view.plans.desired->plan().servers().units();
  if (wanted != servers) {  // those of the plan in force are not replaced any more
    return fmt::format("the newest plan has {} servers, and pushes were divided among {}", wanted, servers);
  }
  job::v1::Rebuild rebuild;
  for (const int shard : LostShards(active)) rebuild.add_shards(shard);
  rebuild.set_after_step(checkpoints.last_step);
  rebuild.set_to_step(to_step);
  const int64_t after = rebuild.after_step();
  if (checkpoints.last_is_damaged || after > to_step || (after > 0 && checkpoints.last_folder.empty())) {
    return fmt::format("{} cannot be used for that", NameOf(after));
  }
  const int64_t kept = KeptUpTo(active, servers, after, to_step);
  if (kept >= to_step) return rebuild;
  return fmt::format(
      "the pushes of step {} are no longer kept by all who sent them: their memory was short, or a trainer that had "
      "them has left, or the number of servers was another one; the rows would follow from {} and "
      "all pushes since",
      kept + 1, NameOf(after));
}

Cause Explained(Cause cause, const job::v1::Rebuild& rebuild, int servers) {
  cause.text += fmt::format("; the rows of {} of {} servers are rebuilt from {} and the pushes of {} steps",
                            rebuild.shards_size(), servers, NameOf(rebuild.after_step()),
                            rebuild.to_step() - rebuild.after_step());
  return cause;
}

Cause Explained(Cause cause, const std::string& why_not) {
  cause.text += fmt::format("; lost rows cannot be rebuilt: {}", why_not);
  return cause;
}

bool IsOfRebuild(const CoreState& view, const job::v1::Fault& fault) {
  const std::optional<GenerationInfo>& next = view.generations.next;
  return next && next->rebuild && fault.generation() == next->generation && fault.kind() == job::v1::FAULT_KIND_RESTORE;
}

void OnFailed(RebuildingState& own, const CoreState& view, const std::string& member, const job::v1::Fault& fault) {
  own.failed = true;
  own.failed_folder = view.checkpoints.last_folder;
  own.why = fmt::format("{}: {}", member, fault.message());
}

bool LosesPushes(const CoreState& view) {
  const std::optional<GenerationInfo>& before = view.generations.active;
  const GenerationInfo& next = *view.generations.next;
  const int servers = ServersOf(next.peers);
  if (!before || next.origin != job::v1::STATE_ORIGIN_PEERS || servers == 0) return false;
  if (ServersOf(before->peers) != servers) return true;
  return std::ranges::any_of(before->peers, [&](const job::v1::Peer& peer) {
    if (peer.slot().role() == MEMBER_ROLE_SERVER) return false;
    const auto found = next.members.find(peer.slot().member());
    return found == next.members.end() || !found->second.is_peer || found->second.peer.instance() != peer.instance();
  });
}

}  // namespace medley::worker::rebuilding
