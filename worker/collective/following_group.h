// A group on top of another one that makes some calls in its own way and leaves all others to it.
#pragma once

#include <absl/status/status.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "common/base/status.h"
#include "worker/collective/group.h"

namespace medley::worker {

class FollowingGroup : public Group {
 public:
  int rank() const override { return base_->rank(); }
  int size() const override { return base_->size(); }

  using Group::AllreduceSum;  // by an algorithm: a subclass says how
  absl::Status AllreduceSum(std::span<float> values, std::span<const model::ReduceLevel> levels, int root) override {
    return Followed(base_->AllreduceSum(values, levels, root));
  }
  absl::Status ReduceScatterSum(std::span<float> values) override { return Followed(base_->ReduceScatterSum(values)); }
  absl::Status AllGather(std::span<float> values) override { return Followed(base_->AllGather(values)); }
  absl::Status Broadcast(std::span<std::byte> bytes, int root) override {
    return Followed(base_->Broadcast(bytes, root));
  }
  absl::Status Barrier() override { return Followed(base_->Barrier()); }
  absl::Status Send(int to, uint64_t tag, std::span<const std::byte> bytes) override {
    return Followed(base_->Send(to, tag, bytes));
  }
  absl::Status Recv(int from, uint64_t tag, std::span<std::byte> bytes) override {
    return Followed(base_->Recv(from, tag, bytes));
  }
  absl::Status Flush() override { return Followed(base_->Flush()); }

 protected:
  explicit FollowingGroup(std::unique_ptr<Group> base) : base_(std::move(base)) {}

  Group& below() { return *base_; }
  // A call of the other group has failed, which has closed it: closes what the subclass has beside it. Any thread.
  virtual void CloseOwn(std::string_view why) = 0;

 private:
  absl::Status Followed(absl::Status status) {
    if (!status.ok() && !absl::IsInvalidArgument(status)) CloseOwn(base::Message(status));
    return status;
  }

  const std::unique_ptr<Group> base_;
};

}  // namespace medley::worker
