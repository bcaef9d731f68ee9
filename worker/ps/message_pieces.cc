#include "worker/ps/message_pieces.h"

#include <algorithm>

namespace medley::worker {
namespace {

constexpr size_t kBytesPerRange = 64;  // at most: tags and lengths of a table's fields in protobuf's format

}  // namespace

int AcceptedBytes(std::span<const int64_t> columns) {
  constexpr int64_t kMargin = int64_t{64} << 10;
  constexpr int64_t kBytesPerValue = sizeof(float);
  int64_t most = static_cast<int64_t>(kMessageBytes);
  for (const int64_t row : columns) {
    most = std::max(most, std::min<int64_t>(row, INT32_MAX / kBytesPerValue) * kBytesPerValue);
  }
  return static_cast<int>(std::min<int64_t>(most + kMargin, INT32_MAX));
}

std::vector<MessagePiece> CutPieces(std::span<const TableLoad> tables, size_t limit) {
  std::vector<MessagePiece> pieces(1);
  size_t left = limit;
  for (size_t table = 0; table < tables.size(); ++table) {
    const size_t per_row = std::max<size_t>(1, tables[table].bytes_per_row);
    for (size_t first = 0; first < tables[table].rows;) {
      const size_t room = left > kBytesPerRange ? (left - kBytesPerRange) / per_row : 0;
      if (room == 0 && !pieces.back().empty()) {
        pieces.emplace_back();
        left = limit;
        continue;
      }
      const size_t count = std::min(std::max<size_t>(1, room), tables[table].rows - first);
      pieces.back().push_back({table, first, count});
      left -= std::min(left, kBytesPerRange + count * per_row);
      first += count;
    }
  }
  return pieces;
}

}  // namespace medley::worker
