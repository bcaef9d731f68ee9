#include "worker/trainer/group_links.h"

#include "common/base/status.h"

namespace medley::worker {
namespace {

// Packs kind of program, flow, step (its low 24 bits) and micro-batch into 56 bits. Steps whose tags are equal are 16
// million steps apart.
uint64_t EncodeTag(const Tag& tag) {
  return (static_cast<uint64_t>(tag.evaluation) << 55) | (static_cast<uint64_t>(tag.flow) << 40) |
         ((static_cast<uint64_t>(tag.step) & 0xffffffU) << 16) | static_cast<uint64_t>(tag.micro);
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

absl::Status GroupReducer::SumAll(int64_t, int, const program::Group& group, std::span<float> values,
                                  const WaitLimit& limit) {
  if (limit.stop.stop_requested()) return base::Cancelled("the allreduce was stopped");
  const bool whole = group.levels.size() == 1 && group.levels.front().groups.size() == 1;
  if (!whole || group.root != 0) return group_.AllreduceSum(values, group.levels, group.root);
  return group_.AllreduceSum(values, group.levels.front().algorithm);  // of all ranks, in which the transport may help
}

}  // namespace medley::worker
