// The pipeline's links over collective groups: activations between stages, gradients within one.
#pragma once

#include <vector>

#include "worker/collective/group.h"
#include "worker/pipeline/activation_channel.h"
#include "worker/pipeline/dense_reducer.h"

namespace medley::worker {

// Thread-safe like ActivationChannel; the group is borrowed. When a generation halts, it closes the group, which ends
// every wait. The deadline of WaitLimit is ignored: the group's own timeout bounds each wait.
class GroupChannel final : public ActivationChannel {
 public:
  // `previous` and `next` are the ranks (in the group) of the neighbouring stages' replicas; empty at the pipeline's
  // ends.
  GroupChannel(Group& group, std::vector<int> previous, std::vector<int> next);

  absl::Status Send(const Tag& tag, int peer, std::span<const float> data, const WaitLimit& limit) override;
  absl::Status Recv(const Tag& tag, int peer, std::span<float> data, const WaitLimit& limit) override;

 private:
  Group& group_;
  const std::vector<int> previous_;
  const std::vector<int> next_;
};

class GroupReducer final : public DenseReducer {
 public:
  GroupReducer(Group& group, model::AllreduceAlgorithm algorithm) : group_(group), algorithm_(algorithm) {}
  absl::Status SumAll(int64_t step, std::span<float> values, const WaitLimit& limit) override;

 private:
  Group& group_;
  const model::AllreduceAlgorithm algorithm_;
};

}  // namespace medley::worker
