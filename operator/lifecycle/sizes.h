// Sizes: how long a step of a program takes on the numbers of units on which the job has run.
#pragma once

#include <cstdint>

#include "common/base/clock.h"
#include "operator/records/program_plan.h"

namespace medley::ops::lifecycle {

class Pass;

struct SizesState {
  static constexpr char kOwner[] = "sizes";
  int64_t generation = 0;          // that trains undisturbed; 0: none
  base::SteadyTime since{};        // it does
  base::SteadyTime measured_at{};  // the last time
};

// Takes what was observed into the status. Needs `pass.observed`.
void RecordSize(Pass& pass);
// What the job has measured, for its plans.
MeasuredSizes SizesOf(const Pass& pass);
// Whether it has measured the size that it runs on, so that estimates follow from what it does.
bool KnowsSize(const Pass& pass);

}  // namespace medley::ops::lifecycle
