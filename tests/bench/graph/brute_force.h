// The best of all strategies of a small question. Not thread-safe.
#pragma once

#include <vector>

#include "scheduler-service/graph/search.h"

namespace medley::bench {

// Leaves out only strategies of which a lower bound is not below the best so far: the computation of a device, what its
// network card must receive in a step (shares of inputs, gradients and parameters that it lacks), or the longest path
// of operations that wait for one another, forward and backward.
class BruteForce {
 public:
  explicit BruteForce(const sched::GraphQuestion& q);

  // `known`: seconds of some strategy. The least seconds of a strategy with any size of buckets and any order.
  double Best(double known);

 private:
  // What an operation sends: for a whole step, and the groups that use it.
  struct Output {
    size_t group = 0;
    double bytes = 0;
    std::vector<size_t> users;  // other groups
  };

  void Branch(size_t group, const std::vector<double>& load);
  // Seconds of the longest path, with the first `decided` groups.
  double LongestPath(size_t decided) const;
  // Of a part of an operation's output from one device to another, and of its gradient back.
  double Crosses(int operation, size_t from, size_t to, double part) const;
  // Seconds in which the card of a device receives, with the first `decided` groups.
  double Receives(size_t decided, size_t device) const;
  // Of the batch, at least and at most.
  double Least(size_t group, size_t device) const;
  double Most(size_t group, size_t device) const;

  const sched::GraphQuestion& q_;
  std::vector<std::vector<std::vector<double>>> loads_;  // by group, action and device: seconds
  std::vector<std::vector<double>> shares_;              // by action and device
  std::vector<Output> outputs_;
  std::vector<double> weights_;  // by group: bytes
  // Passes of one micro-batch by operation, action and device: seconds. `fastest_` of any action and device.
  std::vector<std::vector<std::vector<double>>> passes_;
  std::vector<double> fastest_;
  bool cards_ = true;  // every device has a card of its own
  sched::GraphStrategy strategy_;
  double best_ = 0;
};

}  // namespace medley::bench
