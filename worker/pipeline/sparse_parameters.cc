#include "worker/pipeline/sparse_parameters.h"

namespace medley::worker {

absl::StatusOr<RowsAhead> SparseParameters::PullAhead(int64_t, std::span<const TableKeys>,
                                                      std::vector<std::vector<float>>&, const WaitLimit&) {
  return RowsAhead{};
}

absl::Status SparseParameters::PullChanged(int64_t step, std::span<const TableKeys> tables, const RowsAhead&,
                                           std::vector<std::vector<float>>& rows, const WaitLimit& limit) {
  return Pull(step, tables, rows, limit);
}

}  // namespace medley::worker
