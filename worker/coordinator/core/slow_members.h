// Decides which trainers of a generation are so slow that the others are faster without them.
//
// A trainer is left out when all of these hold without a break for `slow_for`:
// - Its detector (anomaly.h) says that it is slow.
// - It slowed down kLeastSlowness times as much as the others of its stage, and as the others of its pool in that
//   stage, each against its own history (the median of these). If a whole pool or job becomes slow, nobody is left out:
//   that is a matter for the planner.
// - The stage gets faster without it, although the others then take its samples, and those of trainers that are left
//   out with it.
// - At least half of the stage's trainers still train afterwards, those that stand by included; at least one in any
//   case.
// Trainers that become slow together, as those of one host do, are left out together, in one switch: the first of them
// waits up to kGather of `slow_for` for the others.
// Only trainers of stages with several replicas are looked at. Parameter servers never are: each holds its shard alone.
//
// A pure value: the caller passes the time. Not thread-safe.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "worker/coordinator/core/anomaly.h"

namespace medley::worker {

// The place of a trainer in a generation.
struct TrainerPlace {
  std::string member;
  std::string instance;
  std::string pool;
  int stage = 0;
  double share = 1;        // of every batch
  std::string operations;  // of its stage; a trainer with other operations has no history
};

// A trainer to leave out; seconds of computation in a step.
struct SlowTrainer {
  std::string member;
  double recent = 0;
  double usual = 0;
};

inline constexpr double kGather = 0.2;  // of `slow_for`

class SlowMembers {
 public:
  explicit SlowMembers(base::nanoseconds slow_for) : slow_for_(slow_for) {}

  // A generation begins. Histories of trainers that are not in it are kept while `keep` says so, others are forgotten.
  // With another policy, all are. detector kOff: nobody is slow.
  template <typename Keep>
  void Begin(const AnomalyPolicy& policy, std::vector<TrainerPlace> places, const Keep& keep) {
    std::erase_if(histories_, [&](const auto& at) { return !InGeneration(places, at.first) && !keep(at.first); });
    Begin(policy, std::move(places));
  }
  // What was usual for a trainer before the coordinator was restarted.
  void Restore(const AnomalyPolicy& policy, const TrainerPlace& place, double usual);
  // The seconds of computation of a step of a trainer of the generation.
  void Add(const std::string& member, double seconds, base::SteadyTime now);
  // The trainers to leave out now, those that slowed down most first. `standing_by`: by stage, how many trainers of the
  // plan do not train because they were slow.
  std::vector<SlowTrainer> ToLeaveOut(const std::map<int, int>& standing_by, base::SteadyTime now) const;
  // How much slower than usual the others of the stage and pool are now; at least 1.
  double Reference(int stage, const std::string& pool, const std::string& except) const;

 private:
  struct History {
    TrainerPlace place;
    std::unique_ptr<SlownessDetector> detector;
  };
  static bool InGeneration(const std::vector<TrainerPlace>& places, const std::string& member);
  void Begin(const AnomalyPolicy& policy, std::vector<TrainerPlace> places);
  bool SlowedDown(const TrainerPlace& place) const;  // more than the others of its stage
  bool IsSlow(const TrainerPlace& place) const;      // and the stage is faster without it
  // The stage is faster without the trainer, when trainers with `without` of its batch are left out already.
  bool Faster(const TrainerPlace& place, double without) const;
  // Those that have been slow for long enough and wait for no other, worst first.
  std::vector<const TrainerPlace*> Due(base::SteadyTime now) const;
  std::optional<double> Slowdown(const std::string& member) const;  // recent over usual

  base::nanoseconds slow_for_;
  AnomalyPolicy policy_;
  std::vector<TrainerPlace> places_;          // of the generation
  std::map<std::string, History> histories_;  // by member
  std::map<std::string, base::SteadyTime> slow_since_;
};

}  // namespace medley::worker
