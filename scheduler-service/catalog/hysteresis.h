// When a price is worth telling planners: real prices tremble by a few tenths of a per cent every few hours, and a plan
// that follows every tremor only moves. Pure.
#pragma once

#include "common/base/clock.h"

namespace medley::sched {

struct HysteresisOptions {
  double relative = 0.02;                                     // a change must exceed this share of the published price
  double absolute = 0.001;                                    // and this many USD/h
  base::nanoseconds min_interval = std::chrono::minutes(10);  // since the last publication of the same price
  double at_once = 0.10;                                      // a change of this share or more waits for nothing
  bool operator==(const HysteresisOptions&) const = default;
};

// True when `price` should replace `published`, which was told at `published_at`. Both prices are positive. A clock
// that was set back counts as time enough.
bool ShouldPublish(const HysteresisOptions& options, double published, base::WallTime published_at, double price,
                   base::WallTime now);

}  // namespace medley::sched
