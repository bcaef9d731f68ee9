// What every possible stage of a pipeline takes, on every set of devices: the tables of the dynamic programs of
// `exact`. Filled at once, which takes seconds for the largest questions, or until the limits are spent. Then read
// only; Stopped is for one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler-service/devices/plans.h"
#include "scheduler-service/devices/problem.h"
#include "scheduler-service/pipeline/exact_pipeline.h"
#include "scheduler-service/planning/budget.h"

namespace medley::sched {

class StageTables {
 public:
  using Set = unsigned;  // of devices, a bit each

  // A suffix of a pipeline.
  struct State {
    Set used = 0;
    Set first = 0;  // devices of the first stage
  };

  // Both must outlive it. Stages that do not fit in memory with `steps_kept` (FindExactPipeline) take kForever.
  StageTables(const DeviceProblem& problem, const Budget& limits, double steps_kept);

  // Looks at the clock now and then. True from the first time on at which the limits are spent; if it is true after the
  // constructor, the tables are not complete.
  bool Stopped();
  bool stopped() const { return stopped_; }

  int pieces() const { return pieces_; }
  Set all() const { return all_; }
  size_t joined() const { return joined_; }                           // cuts that are not tried
  int Bound(int p) const { return bounds_[static_cast<size_t>(p)]; }  // the first layer of a piece
  std::vector<int> Members(Set set) const;
  // False for sets that leave out a device that is like a later one of the set: another set stands for them.
  bool ordered(Set used) const { return ordered_[used]; }
  // Numbers of states at boundaries, below states().
  size_t StateAt(int p, const State& state) const {
    const auto pair = static_cast<size_t>(pair_[state.used * (all_ + 1) + state.first]);
    return static_cast<size_t>(p) * static_cast<size_t>(pairs_) + pair;
  }
  size_t states() const { return static_cast<size_t>(pieces_ + 1) * static_cast<size_t>(pairs_); }

  // A stage has pieces [p, end). Its computation with balanced shares in whole samples, with the best shares, the
  // reduction, and what its slowest card sends.
  double Computes(int p, int end, Set set) const { return compute_[At(p, end, set)]; }
  double LeastComputes(int p, int end, Set set) const { return least_[At(p, end, set)]; }
  double Reduces(int p, int end, Set set) const { return reduce_[At(p, end, set)]; }
  double Sends(int p, int end, Set set) const { return sends_[At(p, end, set)]; }
  // One way of a message at boundary p.
  double Moves(int p, Set from, Set to) const { return moves_[MoveAt(p, from, to)]; }
  // Batches a second of what is before boundary p, if the devices share it.
  double Capacity(int p, Set set) const { return capacity_[static_cast<size_t>(p) * (all_ + 1) + set]; }

 private:
  void FindOrders();
  void FillTables(double steps_kept);
  void FillStage(int p, int end, Set set, double steps_kept);
  bool Fits(const PipelineStage& stage, double steps_kept) const;
  size_t At(int p, int end, Set set) const {
    return (static_cast<size_t>(p) * static_cast<size_t>(pieces_ + 1) + static_cast<size_t>(end)) * (all_ + 1) + set;
  }
  size_t MoveAt(int p, Set from, Set to) const {
    return (static_cast<size_t>(p) * (all_ + 1) + from) * (all_ + 1) + to;
  }

  const DeviceProblem& problem_;
  const Budget& limits_;
  unsigned calls_ = 0;  // of Stopped
  bool stopped_ = false;
  size_t joined_ = 0;
  const std::vector<int> bounds_;
  int devices_ = 0;
  int pieces_ = 0;
  int pairs_ = 0;
  Set all_ = 0;
  std::vector<bool> ordered_;                             // by set
  std::vector<int> pair_;                                 // by used and first
  std::vector<double> compute_, least_, reduce_, sends_;  // by first piece, end and set
  std::vector<double> moves_;                             // by boundary and both sets
  std::vector<double> capacity_;                          // by boundary and set
};

// ExactPipeline::simulated_bound.
double SimulatedBound(const DeviceProblem& problem, StageTables& tables);

}  // namespace medley::sched
