// Decides after which steps replicas that differ average their parameters (Sync.mode other than FULL).
//
// PERCENTAGE: a fixed fraction of the steps, evenly spread. FLEXIBLE (thesis on hierarchical heterogeneous clusters,
// sections 4.3 and 4.7): the fraction at which the time of synchronisation is `target_ratio` of the time of
// computation, from measured times; it changes only when the measured one is more than a fifth away. NONE: no step but
// those that the caller needs. The caller adds steps that must agree: before a pause, and the last one.
//
// Not thread-safe.
#pragma once

#include <cstdint>

#include "common/model/execution_plan.h"

namespace medley::worker {

class Agreements {
 public:
  Agreements() = default;  // every step agrees
  explicit Agreements(const model::Sync& sync);

  // Whether the next step agrees. Call once for each leased step. `must`: it does, whatever the mode says.
  bool Next(bool must);
  // The times of a step of one replica, in seconds.
  void Add(double compute, double synchronisation, bool agreed);

  double fraction() const { return fraction_; }  // in force
  // Time of synchronisation over time of computation, a moving mean over about 64 measured steps; 0: not measured.
  double ratio() const { return compute_ > 0 ? synchronisation_ / compute_ : 0; }

 private:
  void Steer();

  model::SyncMode mode_ = model::SyncMode::kFull;
  double fraction_ = 1;
  double target_ratio_ = 0;
  double credit_ = 0;           // of a whole step
  double compute_ = 0;          // moving means, in seconds a step
  double synchronisation_ = 0;  // of all steps
  double agreement_ = 0;        // synchronisation of steps that agree
  double other_ = 0;            // and of those that do not
};

}  // namespace medley::worker
