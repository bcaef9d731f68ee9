// The links of an executor over collective groups: flows between devices, gradients within a layout.
#pragma once

#include <utility>
#include <vector>

#include "worker/collective/group.h"
#include "worker/pipeline/dense_reducer.h"
#include "worker/pipeline/flow_channel.h"

namespace medley::worker {

// Thread-safe like FlowChannel; the group is borrowed, and the rank of a device in it is the device's index in the
// program. When a generation halts, it closes the group, which ends every wait. The deadline of WaitLimit is ignored:
// the group's own timeout bounds each wait.
class GroupChannel final : public FlowChannel {
 public:
  explicit GroupChannel(Group& group) : group_(group) {}

  absl::Status Send(const Tag& tag, int peer, std::span<const float> data, const WaitLimit& limit) override;
  absl::Status Recv(const Tag& tag, int peer, std::span<float> data, const WaitLimit& limit) override;

 private:
  Group& group_;
};

// The largest number of flows that a message's tag can name; it can name model::kMaxMicroBatches micro-batches.
inline constexpr int kMaxFlows = 1 << 15;

// Devices that reduce together, and the layouts whose replicas they are.
struct ReducingDevices {
  std::vector<int> members;  // devices of the program, in the order of the first layout's replicas
  std::vector<int> layouts;  // ascending
};

// One entry for each set of devices among which a program reduces something, by its first layout. More than
// model::kMaxReducing sets share one entry, that of all their devices. Pure.
std::vector<ReducingDevices> DevicesThatReduce(const program::Program& program);

// Sums over a layout's replicas. The groups are borrowed, and nobody else sends messages in them. Thread-safe as
// DenseReducer demands.
class GroupReducer final : public DenseReducer {
 public:
  struct Route {
    Group* group = nullptr;  // null: nothing of the layout is reduced here
    std::vector<int> ranks;  // in the group, by replica; empty: the replicas are its ranks
  };
  // `routes`: by layout of the program.
  explicit GroupReducer(std::vector<Route> routes) : routes_(std::move(routes)) {}
  absl::Status SumAll(int64_t step, int block, const program::Group& group, std::span<float> values,
                      const WaitLimit& limit) override;

 private:
  static absl::Status SumByServer(const Route& route, uint64_t tag, const program::Group& group,
                                  std::span<float> values);

  const std::vector<Route> routes_;
};

// `members`: devices by rank in the group.
GroupReducer::Route RouteOver(Group& group, const std::vector<int>& members, const program::Layout& layout);

}  // namespace medley::worker
