// A time that no plan of a strategy falls below, without simulation. Thread-safe.
#pragma once

#include <optional>
#include <vector>

#include "scheduler-service/devices/problem.h"
#include "scheduler-service/graph/grouping.h"
#include "scheduler-service/graph/strategy.h"

namespace medley::sched {

// The largest of these, whatever the order and the size of buckets:
//   load: the computation of a device;
//   card: what the network card of a device must receive in a step: parts of inputs, gradients and parameters that it
//     lacks. Only where each device has a card of its own;
//   path: operations that wait for one another, forward and backward, with what their values need to move;
//   gradients: on each device, the reductions after the first of its gradients that is complete. A ring needs the time
//     of its slowest link; only one works at a time.
// The last two only for at most 2,000 replicas; nothing is known of models with embedding rows and of questions with
// more than 4 million combinations of groups, actions and devices.
class StrategyBound {
 public:
  // Both must outlive it.
  StrategyBound(const DeviceProblem& problem, const OperationGroups& groups);

  // Whether a step takes at least `seconds` with these actions of the first `decided` groups, and any of the others.
  bool Reaches(const std::vector<int>& actions, size_t decided, double seconds) const;

 private:
  // What an operation sends to other groups, for a whole step.
  struct Output {
    size_t group = 0;
    double bytes = 0;
    std::vector<size_t> users;  // groups
  };
  struct Choice {
    const std::vector<int>& actions;
    size_t decided = 0;
  };
  // By operation and device: seconds of the longest path; -1: it has no replica.
  using Paths = std::vector<std::vector<double>>;

  void AddGroups();
  void AddOutputs();
  void AddPasses();
  void AddRing();

  size_t GroupOf(int operation) const { return static_cast<size_t>(groups_.group_of[static_cast<size_t>(operation)]); }
  // Parts of the batch that a device has of a decided group.
  double Share(const Choice& c, size_t group, size_t device) const;
  double Least(const Choice& c, size_t group, size_t device) const;
  double Most(const Choice& c, size_t group, size_t device) const;
  double Computes(const Choice& c, size_t device) const;
  double Receives(const Choice& c, size_t device) const;
  double AfterGradients(const Choice& c, size_t device, const Paths& from) const;
  // Forward and backward, from any beginning to each replica, or with `from` only from replicas on that device.
  Paths PathsTo(const Choice& c, std::optional<size_t> from) const;
  // From each replica to any end.
  Paths PathsFrom(const Choice& c) const;
  double Passes(const Choice& c, int operation, size_t device) const;
  // What replica d of operation i waits for at least of operation j, an input or a user, whose paths are given; -1:
  // nothing known.
  double Waits(const Choice& c, int i, size_t d, int j, const std::vector<double>& paths) const;
  // For a part of an operation's output from one device to another, and of its gradient back.
  double Crosses(int operation, size_t from, size_t to, double part) const;

  const DeviceProblem& problem_;
  const OperationGroups& groups_;
  bool known_ = true, cards_ = true, paths_ = true;      // what of it is worth computing
  std::vector<std::vector<double>> shares_;              // by action and device
  std::vector<std::vector<std::vector<double>>> loads_;  // by group, action and device: seconds
  std::vector<double> weights_;                          // by group: bytes
  std::vector<Output> outputs_;
  // Passes of one micro-batch by operation, action and device: seconds; and the fastest of any.
  std::vector<std::vector<std::vector<double>>> passes_;
  std::vector<double> fastest_;
  double forward_ = 0.5;  // part of the forward pass in both, of any operation at least; messages go both ways
  double ring_ = 0;       // seconds a byte of an allreduce
};

}  // namespace medley::sched
