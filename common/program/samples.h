// Divides a batch into micro-batches, and these among the replicas of a layout. Pure functions.
#pragma once

#include <span>
#include <vector>

#include "common/program/program.h"

namespace medley::program {

struct SampleRange {
  int first = 0;
  int count = 0;
  int end() const { return first + count; }
  bool operator==(const SampleRange&) const = default;
};

// The range of micro-batch `micro` in a batch of `count` samples: [count*micro/micros, count*(micro+1)/micros).
SampleRange MicroBatch(int count, int micro, int micros);

// The fractions at which replicas with these shares (positive, any scale) divide a batch: one more than replicas, from
// 0 to 1.
std::vector<double> Cuts(std::span<const double> shares);

// The samples of replica r of `count`: from round(count * cuts[r]) to round(count * cuts[r + 1]). May be empty. The
// ranges of all replicas follow one another and cover all samples.
SampleRange ShareOf(int count, std::span<const double> cuts, int replica);

// What both have in common; empty ranges start where they would be.
SampleRange Intersect(SampleRange a, SampleRange b);

// The samples of a program's instructions for a batch of `count`, relative to the first sample of the micro-batch. The
// structure of a program does not depend on the batch; only these ranges do.
class Binding {
 public:
  Binding(const Program& program, int count);

  int count() const { return count_; }
  SampleRange Micro(int micro) const { return micros_[static_cast<size_t>(micro)]; }
  // The samples of a replica in a micro-batch.
  SampleRange Replica(int layout, int replica, int micro) const;
  // The samples that the pair of a flow moves in a micro-batch.
  SampleRange Moved(const Flow& flow, const Pair& pair, int micro) const;

 private:
  const Program& program_;
  const int count_;
  std::vector<SampleRange> micros_;
  std::vector<size_t> offset_;         // by layout, into replicas_
  std::vector<SampleRange> replicas_;  // (layout, micro, replica)
};

}  // namespace medley::program
