// How long units of a pool of spot machines live, as it was seen, and what that adds to their price. Values and pure
// functions; the status of the ResourcePool stores them (`status.interruptions`).
//
// Losses are taken as a Poisson process: the rate is the mean of a Gamma posterior, whose prior weighs as much as one
// loss in kPriorLifeHours. What was seen counts less as time passes (half after kLifetimeHalfLifeHours).
#pragma once

#include <string>

#include "common/base/clock.h"
#include "kube/object.h"

namespace medley::ops {

inline constexpr double kPriorLifeHours = 24;
inline constexpr double kLifetimeHalfLifeHours = 7 * 24;
// Nothing is known of a longer time without a look: nobody counted then.
inline constexpr double kMostHoursBetweenLooks = 2;

struct PoolLifetimes {
  double unit_hours = 0;     // for which pods had units, with less weight for older ones
  double losses = 0;         // of units, with the same weights
  double start_seconds = 0;  // from creating a pod to its node, on average, the last ones more; 0: none was seen
  base::WallTime updated{};  // of the last look; the epoch: never
  bool operator==(const PoolLifetimes&) const = default;

  // `units` had nodes since the last look. A clock that was set back counts as no time.
  void NoteUnits(int units, base::WallTime now);
  void NoteLosses(int units) { losses += units; }
  void NoteStart(double seconds);

  // A unit's own; > 0.
  double LossesPerHour() const { return (losses + 1) / (unit_hours + kPriorLifeHours); }
  // True if it is worth a write where `stored` is what is stored: a loss, another quarter of an hour for each unit that
  // was seen, or a start that differs by a fifth.
  bool DiffersFrom(const PoolLifetimes& stored) const;

  // `status.interruptions`; fields that cannot be read, and numbers that no pool can have, count as absent.
  static PoolLifetimes FromJson(const kube::Json& json);
  kube::Json ToJson() const;
};

// What part of the paid time of a unit is expected to be lost where each loss costs `seconds`, of 0.001 and more, at
// most kMostLost; else 0. In steps of 0.001, so that a question to the planner stays the same for a while.
double LostShare(const PoolLifetimes& lifetimes, double seconds);
inline constexpr double kMostLost = 10;

}  // namespace medley::ops
