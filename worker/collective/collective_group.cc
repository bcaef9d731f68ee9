#include "worker/collective/collective_group.h"

#include "common/base/status.h"

namespace medley::worker {

absl::Status CollectiveGroup::AllreduceSum(std::span<float> values, model::AllreduceAlgorithm algorithm) {
  if (size() == 1 || values.empty()) return absl::OkStatus();
  return Guarded(fmt::format("allreduce of {} values", values.size()),
                 [&] { return SumOver(messages(), values, algorithm); });
}

absl::Status CollectiveGroup::AllreduceSum(std::span<float> values, std::span<const model::ReduceLevel> levels,
                                           int root) {
  for (const model::ReduceLevel& level : levels) {
    for (const std::vector<int>& group : level.groups) {
      for (const int member : group) {
        if (member >= 0 && member < size()) continue;
        return base::InvalidArgument("allreduce with rank {}, but the group has {} ranks", member, size());
      }
    }
  }
  return Guarded(fmt::format("allreduce of {} values in {} levels", values.size(), levels.size()),
                 [&] { return SumOverLevels(messages(), values, levels, root); });
}

absl::Status CollectiveGroup::ReduceScatterSum(std::span<float> values) {
  return Guarded(fmt::format("reduce-scatter of {} values", values.size()),
                 [&] { return ReduceScatter(messages(), values); });
}

absl::Status CollectiveGroup::AllGather(std::span<float> values) {
  return Guarded(fmt::format("all-gather of {} values", values.size()),
                 [&] { return worker::AllGather(messages(), values); });
}

absl::Status CollectiveGroup::Broadcast(std::span<std::byte> bytes, int root) {
  if (root < 0 || root >= size()) {
    return base::InvalidArgument("broadcast from rank {}, but the group has {} ranks", root, size());
  }
  return Guarded("broadcast from " + Name(root), [&] { return BroadcastOver(messages(), bytes, root); });
}

absl::Status CollectiveGroup::Barrier() {
  return Guarded("barrier", [&] { return BarrierOver(messages()); });
}

absl::Status CollectiveGroup::CheckPeer(int peer) const {
  if (peer >= 0 && peer < size() && peer != rank()) return absl::OkStatus();
  return base::InvalidArgument("group {}: rank {} is not a peer of rank {} of {}", options_.name, peer, rank(), size());
}

}  // namespace medley::worker
