// The line of the jobs that wait for units, in the order in which they are planned: by priority, then by age.
//
// A job that is planned in vain waits. When units become free, a new turn begins and the first job is woken. One that
// is planned in vain again lets the next one try, so nobody waits while what it needs is free. A job that waits and has
// not tried in the present turn keeps those behind it waiting, but for kPatience at most: its plan may take long. Jobs
// that have not been planned in vain yet keep nobody waiting: while units are plenty, all jobs are planned at once.
//
// Thread-safe. Owner: OperatorApp, or a test.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "kube/object.h"

namespace medley::ops {

class WaitingLine {
 public:
  static constexpr base::nanoseconds kPatience = base::seconds(10);
  // Turns begin at most this often, so that many pods that end together cause few plans.
  static constexpr base::nanoseconds kShortestTurn = base::milliseconds(100);

  struct Job {
    kube::Key key;
    int64_t priority = 0;  // the value of its PriorityClass
    std::string created;   // RFC 3339
  };
  // Wakes a job after a delay. Called without a lock; it may call the line.
  using Wake = std::function<void(const kube::Key& job, base::nanoseconds delay)>;

  WaitingLine(const base::Clock& clock, Wake wake) : clock_(clock), wake_(std::move(wake)) {}

  // Begins a turn, if a job waits. Something may have become free: units, room on nodes, quotas, or a limit was raised.
  void UnitsFreed();

  struct Turn {
    int64_t number = 0;
    std::optional<kube::Key> ahead;  // the job that is planned first
  };
  // Puts the job into the line. If nobody is ahead, the job may count units and be planned; afterwards it calls Wait or
  // Leave. Else it is woken, and may also ask again after a while.
  Turn Take(const Job& job);
  // For a job that waited when this process did not run.
  void Join(const Job& job);
  // The job was planned in vain, with units that were counted after Take had returned turn `number`.
  void Wait(const kube::Key& job, int64_t number);
  // The job has units, or does not want any.
  void Leave(const kube::Key& job);

 private:
  struct Place {
    int64_t priority = 0;
    std::string created;
    kube::Key key;
    bool operator<(const Place& other) const;
  };
  struct State {
    int64_t tried = 0;   // the last turn in which the job was planned
    bool waits = false;  // it was planned in vain
  };
  State& Enter(const Job& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The first job that has not tried in this turn.
  std::optional<kube::Key> Next() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  base::nanoseconds DelayLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const base::Clock& clock_;
  const Wake wake_;
  mutable base::Mutex mutex_;
  int64_t turn_ ABSL_GUARDED_BY(mutex_) = 1;
  base::SteadyTime begun_ ABSL_GUARDED_BY(mutex_){};
  base::SteadyTime earliest_ ABSL_GUARDED_BY(mutex_){};  // when jobs of this turn may be woken
  std::map<Place, State> line_ ABSL_GUARDED_BY(mutex_);
  std::map<kube::Key, Place> places_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace medley::ops
