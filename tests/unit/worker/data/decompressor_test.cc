#include "worker/data/decompressor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/base/testing/status_matchers.h"
#include "tests/unit/worker/data/packed_text.h"

namespace medley::worker {
namespace {

// Gives `packed` in pieces of `in` bytes, and takes at most `out` bytes at a time, as TextFile does.
absl::StatusOr<std::string> Decompressed(const std::string& packed, size_t in, size_t out) {
  const std::unique_ptr<Decompressor> decompressor = MakeDecompressor(packed);
  std::string text, buffer(out, '\0');
  size_t given = 0;
  std::string_view piece;
  while (true) {
    if (piece.empty()) {
      piece = std::string_view(packed).substr(given, in);
      given += piece.size();
    }
    if (piece.empty() && decompressor->complete()) return text;
    const size_t before = piece.size();
    MEDLEY_ASSIGN_OR_RETURN(const size_t count, decompressor->Decompress(piece, buffer.data(), out));
    text.append(buffer, 0, count);
    if (count == 0 && piece.empty() && before == 0 && !decompressor->complete()) return base::DataLoss("truncated");
  }
}

// Members of all sizes, also empty ones, so that each of their ends lies at every place of a piece.
TEST(DecompressorTest, MembersOfGzipFollowEachOther) {
  std::string text, packed;
  for (size_t size = 0; size < 90; ++size) {
    const std::string member(size % 30, static_cast<char>('a' + size % 26));
    text += member;
    packed += Gzip(member);
  }
  for (const size_t in : {1u, 2u, 3u, 7u, 8u, 19u, 64u, 100'000u}) {
    for (const size_t out : {1u, 5u, 4096u}) {
      const auto read = Decompressed(packed, in, out);
      ASSERT_THAT(read, base::IsOk());
      EXPECT_EQ(*read, text) << in << " " << out;
      EXPECT_EQ(*Decompressed(packed + std::string(700, '\0'), in, out), text) << "zeros fill the last block";
    }
  }
}

TEST(DecompressorTest, EveryTruncatedFileIsRefused) {
  const std::string whole = Gzip("first, first, first") + Gzip("second, second, second");
  const size_t first = Gzip("first, first, first").size();
  for (const size_t in : {1u, 5u, 1000u}) {
    for (size_t size = 4; size < whole.size(); ++size) {
      const auto read = Decompressed(whole.substr(0, size), in, 64);
      if (size == first) {
        EXPECT_EQ(*read, "first, first, first");
      } else {
        EXPECT_EQ(read.status().code(), absl::StatusCode::kDataLoss) << size << " " << in;
      }
    }
  }
}

// A header says when the file was made and on what: nothing protects that, nor the bits that fill up the last byte of
// the data.
TEST(DecompressorTest, EveryFlippedBitOfTheDataIsFound) {
  constexpr size_t kHeader = 10;
  const std::string text = "some text that is compressed, some text that is compressed";
  const std::string good = Gzip(text);
  for (size_t bit = kHeader * 8; bit < good.size() * 8; ++bit) {
    std::string damaged = good;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    const bool fills = bit / 8 == good.size() - 9;  // before checksum and length
    const auto read = Decompressed(damaged, 1000, 64);
    if (fills && read.ok()) {
      EXPECT_EQ(*read, text);
    } else {
      EXPECT_EQ(read.status().code(), absl::StatusCode::kDataLoss) << bit;
    }
  }
}

}  // namespace
}  // namespace medley::worker
