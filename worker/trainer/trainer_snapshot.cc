#include "worker/trainer/trainer_snapshot.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "common/base/status.h"

namespace medley::worker {
namespace {

constexpr size_t kPieceFloats = size_t{1} << 18;

// In pieces, because the weights and the state of a row lie beside each other in the file.
absl::Status WriteTable(const TrainerSnapshot::Table& table, CheckpointWriter& writer) {
  const size_t columns = table.columns;
  const size_t rows = table.weights.size() / columns;
  const size_t rows_per_piece = std::max<size_t>(1, kPieceFloats / (2 * columns));
  std::vector<uint64_t> keys;
  std::vector<float> values;
  for (size_t first = 0; first < rows; first += rows_per_piece) {
    const size_t end = std::min(rows, first + rows_per_piece);
    keys.clear();
    values.assign((end - first) * 2 * columns, 0);
    auto to = values.begin();
    for (size_t row = first; row < end; ++row) {
      keys.push_back(row);
      const auto from = static_cast<std::ptrdiff_t>(row * columns);
      to = std::copy_n(table.weights.begin() + from, columns, to);
      if (!table.state.empty()) std::copy_n(table.state.begin() + from, columns, to);
      to += static_cast<std::ptrdiff_t>(columns);
    }
    MEDLEY_RETURN_IF_ERROR(writer.AddRows(table.operation, static_cast<int32_t>(2 * columns), keys, values));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status TrainerSnapshot::Write(CheckpointWriter& writer) const {
  for (const Dense& span : dense) {
    MEDLEY_RETURN_IF_ERROR(writer.AddDense(span.operation, span.name, span.weights, span.state));
  }
  for (const Table& table : tables) MEDLEY_RETURN_IF_ERROR(WriteTable(table, writer));
  return absl::OkStatus();
}

}  // namespace medley::worker
