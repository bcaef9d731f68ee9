// The links of an executor over collective groups: flows between devices, gradients within a layout.
#pragma once

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

class GroupReducer final : public DenseReducer {
 public:
  explicit GroupReducer(Group& group) : group_(group) {}
  absl::Status SumAll(int64_t step, int block, const program::Group& group, std::span<float> values,
                      const WaitLimit& limit) override;

 private:
  Group& group_;
};

}  // namespace medley::worker
