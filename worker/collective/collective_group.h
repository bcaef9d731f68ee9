// The collectives of a group over messages, as sequences of messages (algorithms.h).
#pragma once

#include <absl/functional/function_ref.h>

#include <memory>
#include <string>
#include <utility>

#include "worker/collective/algorithms.h"
#include "worker/collective/group.h"

namespace medley::worker {

// Memory that grows and is not initialised.
class ScratchMemory {
 public:
  std::span<float> Get(size_t count) {
    if (count > size_) {
      values_ = std::make_unique_for_overwrite<float[]>(count);
      size_ = count;
    }
    return {values_.get(), count};
  }

 private:
  std::unique_ptr<float[]> values_;
  size_t size_ = 0;
};

class CollectiveGroup : public Group {
 public:
  explicit CollectiveGroup(GroupOptions options) : options_(std::move(options)) {}

  int rank() const final { return options_.rank; }
  int size() const final { return static_cast<int>(options_.members.size()); }
  absl::Status AllreduceSum(std::span<float> values, model::AllreduceAlgorithm algorithm) final;
  absl::Status AllreduceSum(std::span<float> values, std::span<const model::ReduceLevel> levels, int root) final;
  absl::Status ReduceScatterSum(std::span<float> values) final;
  absl::Status AllGather(std::span<float> values) final;
  absl::Status Broadcast(std::span<std::byte> bytes, int root) final;
  absl::Status Barrier() final;

 protected:
  // The messages of collectives.
  virtual Messages& messages() = 0;
  // Runs `body`, unless the group is closed. Its error closes the group. Returns Aborted where the group is or was
  // closed, and Unavailable from the call that closed it.
  virtual absl::Status Guarded(const std::string& what, absl::FunctionRef<absl::Status()> body) = 0;
  absl::Status CheckPeer(int peer) const;
  const std::string& Name(int rank) const { return options_.members[static_cast<size_t>(rank)]; }
  const GroupOptions& options() const { return options_; }

 private:
  const GroupOptions options_;
};

}  // namespace medley::worker
