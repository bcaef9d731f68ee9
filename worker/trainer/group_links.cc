#include "worker/trainer/group_links.h"

#include <utility>

#include "common/base/status.h"

namespace medley::worker {
namespace {

// Packs direction, step (its low 32 bits) and micro-batch into 56 bits.
uint64_t EncodeTag(const Tag& tag) {
  return (static_cast<uint64_t>(tag.direction) << 48) | ((static_cast<uint64_t>(tag.step) & 0xffffffffU) << 16) |
         (static_cast<uint64_t>(tag.micro) & 0xffffU);
}

absl::StatusOr<int> RankOf(const std::vector<int>& ranks, int peer) {
  if (peer < 0 || static_cast<size_t>(peer) >= ranks.size()) {
    return base::InvalidArgument("replica {} does not exist, the neighbouring stage has {} replicas", peer,
                                 ranks.size());
  }
  return ranks[static_cast<size_t>(peer)];
}

}  // namespace

GroupChannel::GroupChannel(Group& group, std::vector<int> previous, std::vector<int> next)
    : group_(group), previous_(std::move(previous)), next_(std::move(next)) {}

absl::Status GroupChannel::Send(const Tag& tag, int peer, std::span<const float> data, const WaitLimit& limit) {
  if (limit.stop.stop_requested()) return base::Cancelled("the send was stopped");
  MEDLEY_ASSIGN_OR_RETURN(const int rank, RankOf(tag.direction == Direction::kBackward ? previous_ : next_, peer));
  return group_.Send(rank, EncodeTag(tag), std::as_bytes(data));
}

absl::Status GroupChannel::Recv(const Tag& tag, int peer, std::span<float> data, const WaitLimit& limit) {
  if (limit.stop.stop_requested()) return base::Cancelled("the receive was stopped");
  MEDLEY_ASSIGN_OR_RETURN(const int rank, RankOf(tag.direction == Direction::kBackward ? next_ : previous_, peer));
  return group_.Recv(rank, EncodeTag(tag), std::as_writable_bytes(data));
}

absl::Status GroupReducer::SumAll(int64_t, std::span<float> values, const WaitLimit& limit) {
  if (limit.stop.stop_requested()) return base::Cancelled("the allreduce was stopped");
  return group_.AllreduceSum(values, algorithm_);
}

}  // namespace medley::worker
