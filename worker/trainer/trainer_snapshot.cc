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
  const size_t state_columns = rows == 0 ? 0 : table.state.size() / rows;
  const size_t width = columns + state_columns;  // RowFloats
  const size_t rows_per_piece = std::max<size_t>(1, kPieceFloats / width);
  std::vector<uint64_t> keys;
  std::vector<float> values;
  for (size_t first = 0; first < rows; first += rows_per_piece) {
    const size_t end = std::min(rows, first + rows_per_piece);
    keys.clear();
    values.assign((end - first) * width, 0);
    auto to = values.begin();
    for (size_t row = first; row < end; ++row) {
      keys.push_back(row);
      std::copy_n(table.weights.begin() + static_cast<std::ptrdiff_t>(row * columns), columns, to);
      std::copy_n(table.state.begin() + static_cast<std::ptrdiff_t>(row * state_columns), state_columns,
                  to + static_cast<std::ptrdiff_t>(columns));
      to += static_cast<std::ptrdiff_t>(width);
    }
    MEDLEY_RETURN_IF_ERROR(writer.AddRows(table.operation, static_cast<int32_t>(width), keys, values));
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
