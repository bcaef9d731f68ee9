// Divides the rows of several tables among messages of limited size. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace medley::worker {

// Most bytes of keys and rows in one message.
inline constexpr size_t kMessageBytes = size_t{16} << 20;

// Most bytes of a message that a server of tables with these `columns` must accept: kMessageBytes or the largest single
// row with its key, and a margin for the other fields.
int AcceptedBytes(std::span<const int64_t> columns);

// What one shard gets of a table.
struct TableLoad {
  size_t rows = 0;
  size_t bytes_per_row = 0;
};

// Rows [first, first + count) of the load of a table.
struct RowRange {
  size_t table = 0;
  size_t first = 0;
  size_t count = 0;
  bool operator==(const RowRange&) const = default;
};
using MessagePiece = std::vector<RowRange>;

// Returns at least one piece, in the order of the rows, and no empty range. Every piece has at most `limit` bytes, or
// a single row if that alone is larger.
std::vector<MessagePiece> CutPieces(std::span<const TableLoad> tables, size_t limit);

}  // namespace medley::worker
