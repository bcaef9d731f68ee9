// How the time of a step of a program depends on its number of units. Pure, thread-safe.
//
//   seconds(k) = fixed + divided / k + doubling * log2(k)
//
// `divided` is the work that the units share, `fixed` what each of them does, and `doubling` what their communication
// costs (docs/adr/0086-a-program-is-measured-by-running-it.md).
#pragma once

#include <span>

namespace medley::model {

// A step as measured on one number of units.
struct SizeMeasure {
  int units = 1;
  double seconds = 0;  // > 0
  double spread = 0;   // relative standard deviation of `seconds`
};

struct ScalingCurve {
  double fixed = 0;
  double divided = 0;
  double doubling = 0;
  double spread = 0;  // relative standard deviation of what the curve says, near the measured sizes
  int sizes = 0;      // different numbers of units that were measured
  double Seconds(int units) const;
};

// The curve with the least relative errors, whose terms are not negative. It has as many terms as there are different
// numbers of units, at most three: one size says only what is divided, two say besides what is fixed, or, if that is
// not enough, what communication costs. `measures`: at least one.
ScalingCurve FitScaling(std::span<const SizeMeasure> measures);

}  // namespace medley::model
