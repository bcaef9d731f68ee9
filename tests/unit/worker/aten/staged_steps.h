// Steps that stage the rows of the next ones, for tests of StagedRows.
#pragma once

#include <utility>

#include "common/base/rng.h"
#include "tests/unit/worker/aten/layer_chain.h"
#include "worker/aten/caught.h"
#include "worker/aten/staged_rows.h"

namespace medley::worker::aten {

inline constexpr int64_t kStagedColumns = 5;

inline Floats RowsOfStep(int64_t step, bool older) {
  base::Rng rng(static_cast<uint64_t>(step));
  Floats rows(static_cast<size_t>(kStagedColumns) * (20 + static_cast<size_t>(step % 3)));
  for (float& x : rows) x = static_cast<float>(rng.Uniform(-1, 1));
  for (size_t r = 0; older && r < rows.size(); r += 4 * kStagedColumns) rows[r] = 7;  // of every fourth row
  return rows;
}

// Steps that stage the rows of the next one, as far as `ahead` says, and compute with their own.
inline absl::Status StagedSteps(int64_t first, int64_t end, int64_t ahead, StagedRows& staged, const Place& place) {
  return Caught("steps", [&]() -> absl::Status {
    for (int64_t step = first; step < end; ++step) {
      if (step == first) MEDLEY_RETURN_IF_ERROR(staged.Stage(step, 0, RowsOfStep(step, true)));
      for (int64_t next = step + 1; next <= step + ahead && next < end; ++next) {
        MEDLEY_RETURN_IF_ERROR(staged.Stage(next, 0, RowsOfStep(next, true)));
      }
      const Floats rows = RowsOfStep(step, false);
      MEDLEY_ASSIGN_OR_RETURN(const at::Tensor there, staged.Take(step, 0, rows));
      if (!there.defined()) return base::Internal("the rows of step {} were not staged", step);
      at::Tensor sum = there.mul(1);
      for (int k = 0; k < 5; ++k) sum = sum + there;
      Floats found(rows.size());
      MEDLEY_RETURN_IF_ERROR(place.CopyOut(there.mul(1), found));
      if (found != rows) return base::DataLoss("step {} computed with other rows", step);
    }
    return absl::OkStatus();
  });
}

}  // namespace medley::worker::aten
