// Divides a batch or micro-batch among the replicas of a stage, and computes the messages between two stages.
//
// Replica r of a stage with shares s_0..s_{n-1} (positive, any scale) takes samples [cut(r), cut(r+1)) with
// cut(r) = round(count * (s_0 + ... + s_{r-1}) / sum). The ranges are contiguous and disjoint and cover all samples.
// Pure functions.
#pragma once

#include <span>
#include <vector>

#include "common/model/execution_plan.h"

namespace medley::worker {

struct SampleRange {
  int first = 0;
  int count = 0;
  bool operator==(const SampleRange&) const = default;
};

// One message: the samples `range` of the micro-batch, from replica `from` of one stage to replica `to` of the next.
struct Transfer {
  int from = 0;
  int to = 0;
  SampleRange range;
  bool operator==(const Transfer&) const = default;
};

// The share of each replica, in rank order: a group's share is divided equally among its units.
std::vector<double> ReplicaShares(const model::Stage& stage);

// The range of each replica; a range may be empty.
std::vector<SampleRange> Split(int count, std::span<const double> shares);

// The non-empty overlaps of the two stages' ranges, ordered by `from`, then `to`.
std::vector<Transfer> Reshard(int count, std::span<const double> from_shares, std::span<const double> to_shares);

// The range of micro-batch `micro` in a batch of `count` samples: [count*micro/micros, count*(micro+1)/micros).
SampleRange MicroBatch(int count, int micro, int micros);

}  // namespace medley::worker
