// Collectives as sequences of messages, one file each. Each adds in an order that only the number of ranks and values
// determines, and gives every rank the same bits.
//
// Sources: chapter 3 of the thesis on hierarchical heterogeneous clusters, for all but broadcast and barrier. With n
// ranks and m bytes:
//
//   centralized         the root adds all; m (n-1) bytes each into and out of it
//   ring                2 (n-1) rounds, in each a rank sends m/n bytes
//   recursive doubling  log2(n) rounds of m bytes (not halving-doubling, which sends parts)
//   linear              m bytes from each rank to the next, and back; adds in rank order, as one process would
//   hierarchical        any of these in groups, then among the groups' first ranks, then a broadcast in groups
#pragma once

#include <absl/status/status.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/model/reduce_level.h"
#include "worker/collective/messages.h"

namespace medley::worker {

// Each replaces `values` by their sum over all ranks.
absl::Status SumByRing(Messages& messages, std::span<float> values);
absl::Status SumByRecursiveDoubling(Messages& messages, std::span<float> values);
absl::Status SumCentralized(Messages& messages, std::span<float> values, int root);
absl::Status SumLinearly(Messages& messages, std::span<float> values);
// The one of the four that `algorithm` names; kAuto is kRing. `root`: of kCentralized.
absl::Status SumOver(Messages& messages, std::span<float> values, model::AllreduceAlgorithm algorithm, int root = 0);
// `levels`: groups of ranks, innermost first. A rank that is in no group of the first level keeps its values. `root`
// adds where a level is centralized and its group contains it, else the first rank of the group.
absl::Status SumOverLevels(Messages& messages, std::span<float> values, std::span<const model::ReduceLevel> levels,
                           int root);

// The part of `count` values that is rank r's in the next two: neighbouring parts, equal but for one value.
struct Part {
  size_t first = 0;
  size_t count = 0;
};
Part PartOf(size_t count, int rank, int size);
// The two halves of a ring: `values` become the sum in this rank's part, and are undefined elsewhere.
absl::Status ReduceScatter(Messages& messages, std::span<float> values);
// Each rank gives its part of `values` to all.
absl::Status AllGather(Messages& messages, std::span<float> values);

// Through a binomial tree.
absl::Status BroadcastOver(Messages& messages, std::span<std::byte> bytes, int root);
// Returns when every rank has called it.
absl::Status BarrierOver(Messages& messages);

// to += values.
void AddTo(std::span<float> to, std::span<const float> values);

}  // namespace medley::worker
