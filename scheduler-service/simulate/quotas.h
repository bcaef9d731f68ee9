// CPU quotas in simulated time. In each period a device may compute for a number of seconds; then it waits for the next
// period, as Linux' bandwidth control and Kubernetes' CPU limits do. Pure values; one thread uses an object.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler-service/simulate/durations.h"

namespace medley::sched {

class Quotas {
 public:
  // `quotas`: by device, borrowed; empty: nothing limits any device.
  explicit Quotas(const std::vector<Durations::Quota>& quotas) : quotas_(quotas), spent_(quotas.size()) {}

  // The end of computation of `seconds` at full speed that a device goes on with at `now`. What a device has computed
  // is remembered, so calls for one device should come in the order of time; an earlier one counts as if it came then.
  double Spend(int device, double now, double seconds);

  // The first moment from `now` on at which the quota lets the device run, while it computes what was spent before.
  double Runs(int device, double now) const;

 private:
  struct Spent {
    int64_t window = -1;  // number of the period
    double left = 0;      // seconds of it in which the device may still compute
    int64_t first = -1;   // the period in which the last computation began, and until when it could go on in it
    double first_end = 0;
  };
  double StartOf(const Durations::Quota& quota, int64_t window) const {
    return quota.phase + static_cast<double>(window) * quota.period;
  }
  const std::vector<Durations::Quota>& quotas_;
  std::vector<Spent> spent_;
};

}  // namespace medley::sched
