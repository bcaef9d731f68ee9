// A lower bound of the seconds of a step of synchronous pipelines, by branch and bound over the slowest cycle B and the
// longest reduction R. Pure, if the functions are.
//
// A step takes (fill + (M - 1) B) / M + R (closed_form.h). Of all pipelines with B in [b1, b2] and R in [r1, r2], the
// time to fill is at least `least_fill(b2, r2)`, so a step takes at least (least_fill(b2, r2) + (M - 1) b1) / M + r1.
// The range with the least bound is halved along B or R, whichever adds more.
#pragma once

#include <functional>
#include <optional>

namespace medley::sched {

inline constexpr double kStepGap = 1e-3;  // relative, at which the search for a better bound ends

struct StepQuestion {
  double micro_batches = 1;  // M
  double least_cycle = 0;    // no pipeline has a slowest cycle below it
  // Seconds of a step of the best pipeline so far, which least_fill may change.
  std::function<double()> best;
  // The least time to fill of pipelines whose slowest cycle and longest reduction do not exceed these, or less;
  // nullopt: there are none, or spent().
  std::function<std::optional<double>(double most_cycle, double most_reduction)> least_fill;
  std::function<bool()> spent;
};

// Seconds that no pipeline falls below; at most those of the best one. 0: nothing was proven before spent().
double LeastStepSeconds(const StepQuestion& question);

}  // namespace medley::sched
