// The update of one step for many rows of equal length: the same bits as Apply (optimizer.h), but what depends only on
// the step is computed once. Immutable; thread-safe.
#pragma once

#include <cstddef>

#include "worker/params/update_kernels.h"

namespace medley::worker {

class RowUpdate {
 public:
  // `optimizer`: of the step (Optimizer::AtStep) and for rows (ForRows). `columns`: weights of a row.
  RowUpdate(const Optimizer& optimizer, size_t columns)
      : update_(UpdateKernelOf(optimizer, BestInstructions())), factors_(FactorsOf(optimizer)), columns_(columns) {}

  // `row`: weights and state, RowFloats in all. `gradient`: as many as the weights.
  void operator()(float* row, const float* gradient) const {
    float* const state = row + columns_;
    update_({row, state, gradient, row, state, columns_}, factors_);
  }

 private:
  const UpdateKernel update_;
  const UpdateFactors factors_;
  const size_t columns_;
};

}  // namespace medley::worker
