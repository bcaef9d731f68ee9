// The line of the jobs that wait for units, in the order in which they are planned: by priority, then by age.
//
// A job that is planned in vain waits. When units become free, a turn begins: every waiting job is woken and planned
// once, one after the other. So nobody waits while what it needs is free. What becomes free during a turn begins it
// anew with the first job; after kPatience of that, the turn goes on to its end first, so those at the end of the line
// also get their turn. A job is woken when the one ahead of it has tried; if that takes longer than kPatience, the line
// goes on without it. Jobs that have not been planned in vain yet keep nobody waiting: while units are plenty, all jobs
// are planned at once.
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

  // Something may have become free: units, room on nodes, quotas, or a limit was raised.
  void UnitsFreed();

  // The number of the present turn. A job reads it before it counts units.
  int64_t turn() const;
  // Puts the job into the line. Returns the job that is planned first: this one is woken after it, and may also ask
  // again after a while. nullopt: the job may be planned.
  std::optional<kube::Key> Take(const Job& job);
  // The job that is planned first because units have become free since `turn`, when `job` counted; nullopt: none.
  std::optional<kube::Key> Ahead(const kube::Key& job, int64_t turn) const;
  // The job has no units yet. Call it after each pass over the job, unless its planner has not answered yet, with the
  // turn in which the job counted units or else the pass began.
  void Wait(const kube::Key& job, int64_t turn);
  // The job has units, or does not want any.
  void Leave(const kube::Key& job);
  // For a job that waited when this process did not run.
  void Join(const Job& job);

 private:
  struct Place {
    int64_t priority = 0;
    std::string created;
    kube::Key key;
    bool operator<(const Place& other) const;
  };
  struct State {
    int64_t tried = 0;     // the last turn in which the job was planned
    bool waits = false;    // it was planned in vain, or another job was ahead
    bool blocked = false;  // another job was ahead when it asked last
  };
  struct Woken {
    kube::Key job;
    base::nanoseconds delay{};
  };
  State& Enter(const Job& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  State* Find(const kube::Key& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Moves on to the first job that waits and has not tried in this turn; at the end of the turn begins the next one, if
  // something has become free. Returns the job to wake, if it is not the one that was woken last.
  std::optional<Woken> Advance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WakeUp(const std::optional<Woken>& woken) const;

  const base::Clock& clock_;
  const Wake wake_;
  mutable base::Mutex mutex_;
  int64_t turn_ ABSL_GUARDED_BY(mutex_) = 1;
  bool tried_ ABSL_GUARDED_BY(mutex_) = false;              // a job may have counted units in the present turn
  bool freed_ ABSL_GUARDED_BY(mutex_) = false;              // since the present turn began
  base::SteadyTime begun_ ABSL_GUARDED_BY(mutex_){};        // the present turn; may be in the future
  base::SteadyTime round_begun_ ABSL_GUARDED_BY(mutex_){};  // the first of the turns that were begun anew
  std::optional<Place> head_ ABSL_GUARDED_BY(mutex_);       // the job that was woken last
  base::SteadyTime head_since_ ABSL_GUARDED_BY(mutex_){};   // when it was to wake
  std::map<Place, State> line_ ABSL_GUARDED_BY(mutex_);
  std::map<kube::Key, Place> places_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace medley::ops
