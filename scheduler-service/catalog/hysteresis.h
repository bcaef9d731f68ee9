// Decides when a price change is worth publishing. Real prices change by a few tenths of a per cent every few hours,
// and jobs must not be replanned for such changes. Pure.
#pragma once

#include "common/base/clock.h"

namespace medley::sched {

struct HysteresisOptions {
  double relative = 0.02;                                     // a change must exceed this share of the published price,
  double absolute = 0.001;                                    // and this many USD/h,
  base::nanoseconds min_interval = std::chrono::minutes(10);  // and the published price must be at least this old
  double at_once = 0.10;  // a change of at least this share of the published price is published at once
  bool operator==(const HysteresisOptions&) const = default;
};

// True if `price` must replace the price `published`, which was published at `published_at`. Both prices are positive.
// If the clock was set back, min_interval counts as elapsed.
bool ShouldPublish(const HysteresisOptions& options, double published, base::WallTime published_at, double price,
                   base::WallTime now);

}  // namespace medley::sched
