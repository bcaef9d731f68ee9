#include "scheduler-service/pipeline/step_bound.h"

#include <algorithm>
#include <limits>
#include <queue>

namespace medley::sched {
namespace {

constexpr int kMostRanges = 200;

struct Range {
  double cycle = 0, most_cycle = 0;
  double reduction = 0, most_reduction = 0;
  double fill = 0;   // the least time to fill within most_cycle and most_reduction
  double bound = 0;  // of a step
  bool operator<(const Range& other) const { return bound > other.bound; }  // the least bound is the top of a queue
};

void SetBound(double micros, Range& range) {
  range.bound = (range.fill + (micros - 1) * range.cycle) / micros + range.reduction;
}

}  // namespace

double LeastStepSeconds(const StepQuestion& question) {
  const double micros = question.micro_batches;
  // A pipeline with a slower cycle, or with a longer reduction, is no better than the best one.
  const double most = question.best();
  Range all{question.least_cycle, std::max(question.least_cycle, micros > 1 ? most * micros / (micros - 1) : most), 0,
            most};
  const auto fill = question.least_fill(all.most_cycle, all.most_reduction);
  if (!fill) return question.spent() ? 0 : question.best();
  all.fill = *fill;
  SetBound(micros, all);
  std::priority_queue<Range> open;
  open.push(all);
  double closed = std::numeric_limits<double>::infinity();  // the least bound of ranges too small to halve
  for (int i = 0; i < kMostRanges && !open.empty() && !question.spent(); ++i) {
    const Range range = open.top();
    const double enough = question.best() * (1 - kStepGap);
    if (std::min(range.bound, closed) >= enough || closed <= range.bound) break;
    open.pop();
    const double cycles = (micros - 1) / micros * (range.most_cycle - range.cycle);
    const double reductions = range.most_reduction - range.reduction;
    if (std::max(cycles, reductions) < kStepGap / 4 * question.best()) {
      closed = std::min(closed, range.bound);
      continue;
    }
    Range low = range, high = range;
    if (cycles >= reductions) {
      low.most_cycle = high.cycle = range.cycle + (range.most_cycle - range.cycle) / 2;
    } else {
      low.most_reduction = high.reduction = range.reduction + reductions / 2;
    }
    SetBound(micros, high);
    open.push(high);
    const auto within = question.least_fill(low.most_cycle, low.most_reduction);
    if (within) {
      low.fill = *within;
      SetBound(micros, low);
    }
    if (within || question.spent()) open.push(low);
  }
  const double left = open.empty() ? closed : std::min(closed, open.top().bound);
  return std::min(left, question.best());
}

}  // namespace medley::sched
