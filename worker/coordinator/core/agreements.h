// Decides after which steps replicas that differ average their parameters (Sync.mode other than FULL).
//
// PERCENTAGE: a fixed fraction of the steps, evenly spread. FLEXIBLE (thesis on hierarchical heterogeneous clusters,
// sections 4.3 and 4.7): the fraction at which the time of synchronisation is `target_ratio` of the time of
// computation; it changes only when the measured one is more than a fifth away. The costlier one of the last two
// agreements counts: a link that has become slow at once, one that has become fast after two. NONE: no step but those
// that the caller needs. The caller adds steps that must agree: before a pause, and the last one.
//
// Synchronisation is what an agreement takes in itself, because only that depends on the fraction. Not counted:
// - what the groups of a replica take in every step;
// - how long replicas wait for slower ones. All train the same steps, so however rarely they agree, they wait as long
//   in all. Who comes last does not wait: the shortest time among the replicas is that of the links.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "common/model/forward.h"

namespace medley::worker {

class Agreements {
 public:
  Agreements() = default;  // every step agrees
  explicit Agreements(const model::Sync& sync);

  // Whether the next step agrees. Call once for each leased step. `must`: it does, whatever the mode says.
  bool Next(bool must);
  // The seconds of a step of one replica: its computation, and its reductions with the waits in them. The steps of a
  // replica come in their order, with those of others between them.
  void Add(const std::string& member, int64_t step, double compute, double reductions, bool agreed);
  // All replicas have reported the steps up to this one.
  void Reported(int64_t step);

  double fraction() const { return fraction_; }  // in force
  // Time of synchronisation over time of computation, a moving mean over the last agreements; 0: not measured.
  double ratio() const { return ratio_; }

 private:
  void Learn();  // from the last agreement

  model::SyncMode mode_{};  // kFull
  double fraction_ = 1;
  double target_ratio_ = 0;
  double credit_ = 0;                     // of a whole step
  double compute_ = 0;                    // moving mean, in seconds a step
  std::map<std::string, double> groups_;  // by replica: reductions in a step that does not agree, a moving mean
  double last_ = 0;                       // cost of the last agreement that was learnt from
  double ratio_ = 0;
  int64_t agreement_ = 0;  // the last step that agreed; 0: none yet
  int64_t before_ = 0;     // the one before it
  double least_ = 0;       // of the replicas that have reported it
};

}  // namespace medley::worker
