#include "common/base/hasher.h"

#include <gtest/gtest.h>

namespace medley::base {
namespace {

TEST(HasherTest, TheHashIsXxh3With128Bits) {
  Hasher hash;
  EXPECT_EQ(hash.Hex(), "99aa06d3014798d86001c324468d497f") << "of no bytes: the value in xxHash's own tests";
  hash.Add("a");
  EXPECT_EQ(hash.Hex(), "a96faf705af16834e6c632b61e964e1f");
}

TEST(HasherTest, PiecesDoNotMatter) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += static_cast<char>(i * 31);
  Hasher whole;
  whole.Add(text);
  for (const size_t size : {size_t{1}, size_t{7}, size_t{256}, size_t{4999}}) {
    Hasher pieces;
    for (size_t at = 0; at < text.size(); at += size) pieces.Add(std::string_view(text).substr(at, size));
    EXPECT_EQ(pieces.Hex(), whole.Hex()) << size;
  }
  text[2500] = static_cast<char>(text[2500] ^ 1);
  Hasher other;
  other.Add(text);
  EXPECT_NE(other.Hex(), whole.Hex());
}

}  // namespace
}  // namespace medley::base
