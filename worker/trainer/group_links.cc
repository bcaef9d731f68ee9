#include "worker/trainer/group_links.h"

#include <algorithm>
#include <map>
#include <set>

#include "common/base/status.h"
#include "common/model/allreduce.h"
#include "worker/collective/algorithms.h"

namespace medley::worker {
namespace {

// Packs kind of program, flow, step (its low 24 bits) and micro-batch into 56 bits. Steps whose tags are equal are 16
// million steps apart.
uint64_t EncodeTag(const Tag& tag) {
  return (static_cast<uint64_t>(tag.evaluation) << 55) | (static_cast<uint64_t>(tag.flow) << 40) |
         ((static_cast<uint64_t>(tag.step) & 0xffffffU) << 16) | static_cast<uint64_t>(tag.micro);
}

// The same for gradients, which have a group of connections to themselves.
uint64_t EncodeTag(int64_t step, int block) {
  return (static_cast<uint64_t>(block) << 24) | (static_cast<uint64_t>(step) & 0xffffffU);
}

}  // namespace

absl::Status GroupChannel::Send(const Tag& tag, int peer, std::span<const float> data, const WaitLimit& limit) {
  if (limit.stop.stop_requested()) return base::Cancelled("the send was stopped");
  return group_.Send(peer, EncodeTag(tag), std::as_bytes(data));
}

absl::Status GroupChannel::Recv(const Tag& tag, int peer, std::span<float> data, const WaitLimit& limit) {
  if (limit.stop.stop_requested()) return base::Cancelled("the receive was stopped");
  return group_.Recv(peer, EncodeTag(tag), std::as_writable_bytes(data));
}

std::vector<ReducingDevices> DevicesThatReduce(const program::Program& program) {
  std::set<int> layouts;
  for (const program::Block& block : program.blocks) {
    if (block.group >= 0 || block.average >= 0) layouts.insert(block.layout);
  }
  for (const program::Shared& shared : program.shared) {
    if (shared.group >= 0) layouts.insert(program.groups[static_cast<size_t>(shared.group)].layout);
  }
  if (program.norm_group >= 0) layouts.insert(program.groups[static_cast<size_t>(program.norm_group)].layout);
  std::vector<ReducingDevices> out;
  std::map<std::set<int>, size_t> entries;  // by set of devices
  for (const int layout : layouts) {
    const std::vector<int>& devices = program.layouts[static_cast<size_t>(layout)].devices;
    const auto [entry, is_new] = entries.emplace(std::set<int>(devices.begin(), devices.end()), out.size());
    if (is_new) out.push_back({devices, {}});
    out[entry->second].layouts.push_back(layout);
  }
  if (out.size() <= model::kMaxReducing) return out;
  ReducingDevices all;
  std::set<int> members;
  for (const auto& [devices, entry] : entries) members.insert(devices.begin(), devices.end());
  all.members.assign(members.begin(), members.end());
  all.layouts.assign(layouts.begin(), layouts.end());
  return {std::move(all)};
}

GroupReducer::Route RouteOver(Group& group, const std::vector<int>& members, const program::Layout& layout) {
  if (layout.devices == members) return {&group, {}};
  GroupReducer::Route route{&group, {}};
  for (const int device : layout.devices) {
    route.ranks.push_back(static_cast<int>(std::ranges::find(members, device) - members.begin()));
  }
  return route;
}

// Piece by piece: the server adds one while others are on their way to it and from it. It adds in rank order, so the
// bits are those of SumCentralized. A member has at most `ahead` pieces on their way. So what a process has not sent
// yet stays far below where Group::Send waits (at most 16 servers' pieces and, as a server, those of all members), and
// no two ends wait to send to each other.
absl::Status GroupReducer::SumByServer(const Route& route, uint64_t tag, const program::Group& group,
                                       std::span<float> values) {
  const std::vector<int>& members = group.levels.front().groups.front();
  const size_t ahead = model::ServedAhead(members.size());
  const size_t size = model::ServedPiece(members.size(), values.size());
  const auto rank = [&](int replica) {
    return route.ranks.empty() ? replica : route.ranks[static_cast<size_t>(replica)];
  };
  const size_t pieces = (values.size() + size - 1) / size;
  const auto piece = [&](size_t p) { return values.subspan(p * size, std::min(size, values.size() - p * size)); };
  if (route.group->rank() != rank(group.root)) {
    for (size_t p = 0; p < pieces + ahead; ++p) {
      if (p < pieces) MEDLEY_RETURN_IF_ERROR(route.group->Send(rank(group.root), tag, std::as_bytes(piece(p))));
      if (p < ahead || p - ahead >= pieces) continue;
      MEDLEY_RETURN_IF_ERROR(route.group->Recv(rank(group.root), tag, std::as_writable_bytes(piece(p - ahead))));
    }
    return absl::OkStatus();
  }
  std::vector<float> other(std::min(size, values.size()));
  for (size_t p = 0; p < pieces; ++p) {
    const std::span<float> sum = piece(p), part = std::span(other).first(sum.size());
    for (const int member : members) {
      if (member == group.root) continue;
      MEDLEY_RETURN_IF_ERROR(route.group->Recv(rank(member), tag, std::as_writable_bytes(part)));
      AddTo(sum, part);
    }
    for (const int member : members) {
      if (member != group.root) MEDLEY_RETURN_IF_ERROR(route.group->Send(rank(member), tag, std::as_bytes(sum)));
    }
  }
  return absl::OkStatus();
}

absl::Status GroupReducer::SumAll(int64_t step, int block, const program::Group& group, std::span<float> values,
                                  const WaitLimit& limit) {
  if (limit.stop.stop_requested()) return base::Cancelled("the allreduce was stopped");
  const Route& route = routes_[static_cast<size_t>(group.layout)];
  MEDLEY_CHECK(route.group != nullptr, "a replica of the layout reduces");
  if (group.served) return SumByServer(route, EncodeTag(step, block), group, values);
  if (route.ranks.empty()) {
    const bool whole = group.levels.size() == 1 && group.levels.front().groups.size() == 1;
    if (!whole || group.root != 0) return route.group->AllreduceSum(values, group.levels, group.root);
    return route.group->AllreduceSum(values, group.levels.front().algorithm);  // in which the transport may help
  }
  const auto rank = [&](int replica) { return route.ranks[static_cast<size_t>(replica)]; };
  std::vector<model::ReduceLevel> levels = group.levels;
  for (model::ReduceLevel& level : levels) {
    for (std::vector<int>& members : level.groups) std::ranges::transform(members, members.begin(), rank);
  }
  return route.group->AllreduceSum(values, levels, rank(group.root));
}

}  // namespace medley::worker
