// How many devices of each kind a plan may use: the choices among which a request with bounds searches. Pure.
#pragma once

#include <vector>

#include "common/model/planning.h"
#include "scheduler-service/devices/problem.h"

namespace medley::sched {

// Devices that a plan may exchange without any effect: of one pool, with the same links to every other device. Where
// there were more than kMostKinds kinds, one for each pool, whose devices are used in the given order.
inline constexpr size_t kMostKinds = 12;
struct DeviceKinds {
  std::vector<std::vector<int>> devices;  // of the problem, by kind
  bool exact = true;                      // false: devices of a kind have unlike links
};
DeviceKinds KindsOf(const DeviceProblem& problem);

struct DeviceChoice {
  std::vector<int> counts;  // by kind
  int units = 0;
  double usd_per_hour = 0;  // 0: a device has no price
  // No plan with these devices takes less for a step, by the simulator: their computing power. Links are not counted.
  double least_seconds = 0;
  double estimate = 0;  // of a step: copies of the whole model, balanced, and one allreduce of all gradients
};

struct DeviceChoices {
  std::vector<DeviceChoice> choices;  // the most promising first
  bool all = true;                    // false: too many, so only some numbers of each kind are among them
};

// Every choice that can keep the request's bounds of units, money and time, by what is certain of it. Ordered by the
// objective with `estimate` as the seconds; those whose estimate breaks a bound come last. At most kMostChoices.
inline constexpr size_t kMostChoices = 20'000;
DeviceChoices ChoicesOf(const DeviceProblem& problem, const DeviceKinds& kinds, const model::Constraints& bounds,
                        model::Objective objective);

// The devices of a choice, ascending.
std::vector<int> DevicesOf(const DeviceKinds& kinds, const DeviceChoice& choice);

}  // namespace medley::sched
