#include "worker/ps/message_pieces.h"

#include <gtest/gtest.h>

#include "common/base/rng.h"

namespace medley::worker {
namespace {

TEST(MessagePiecesTest, NothingIsOneEmptyPiece) {
  EXPECT_EQ(CutPieces({}, 100), std::vector<MessagePiece>(1));
  EXPECT_EQ(CutPieces(std::vector<TableLoad>{{0, 8}, {0, 8}}, 100), std::vector<MessagePiece>(1));
}

TEST(MessagePiecesTest, WhatFitsIsOnePiece) {
  EXPECT_EQ(CutPieces(std::vector<TableLoad>{{10, 8}, {0, 8}, {2, 4}}, 1000),
            (std::vector<MessagePiece>{{{0, 0, 10}, {2, 0, 2}}}));
}

TEST(MessagePiecesTest, ARowThatIsLargerThanTheLimitIsAPiece) {
  EXPECT_EQ(CutPieces(std::vector<TableLoad>{{2, 1000}}, 100), (std::vector<MessagePiece>{{{0, 0, 1}}, {{0, 1, 1}}}));
}

TEST(MessagePiecesTest, PiecesCoverEveryRowOnceInOrderWithinTheLimit) {
  base::Rng rng(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<TableLoad> tables(1 + rng.Below(4));
    for (TableLoad& table : tables) table = {rng.Below(300), 8 + rng.Below(100)};
    const size_t limit = 200 + rng.Below(2000);
    std::vector<size_t> next(tables.size());
    for (const MessagePiece& piece : CutPieces(tables, limit)) {
      size_t bytes = 0;
      for (const RowRange& range : piece) {
        ASSERT_GT(range.count, 0U);
        ASSERT_EQ(range.first, next[range.table]);
        next[range.table] += range.count;
        bytes += range.count * tables[range.table].bytes_per_row;
      }
      ASSERT_LE(bytes, limit);
    }
    for (size_t t = 0; t < tables.size(); ++t) ASSERT_EQ(next[t], tables[t].rows);
  }
}

}  // namespace
}  // namespace medley::worker
