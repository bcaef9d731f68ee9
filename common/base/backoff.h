// Exponential backoff with jitter. The waits are first, first * factor, ... up to max; each is multiplied by a random
// number in [1 - jitter, 1 + jitter]. Not thread-safe.
#pragma once

#include <algorithm>

#include "common/base/clock.h"
#include "common/base/rng.h"

namespace medley::base {

class Backoff {
 public:
  struct Options {
    nanoseconds first = milliseconds(100);
    nanoseconds max = seconds(30);
    double factor = 2.0;
    double jitter = 0.2;  // in [0, 1)
  };

  Backoff(Options options, uint64_t seed) : options_(options), rng_(seed), next_(options.first) {}

  // Returns the next wait.
  nanoseconds Next() {
    const nanoseconds base = next_;
    next_ = std::min(options_.max, FromSeconds(ToSeconds(next_) * options_.factor));
    return FromSeconds(ToSeconds(base) * rng_.Uniform(1 - options_.jitter, 1 + options_.jitter));
  }
  void Reset() { next_ = options_.first; }

 private:
  const Options options_;
  Rng rng_;
  nanoseconds next_;
};

}  // namespace medley::base
