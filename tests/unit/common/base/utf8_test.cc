#include "common/base/utf8.h"

#include <gmock/gmock.h>

#include "common/base/hex.h"
#include "common/base/rng.h"
#include "common/base/testing/status_matchers.h"

namespace medley::base {
namespace {

using testing::HasSubstr;

TEST(Utf8Test, KnowsWellFormedText) {
  for (const char* text : {"", "plain", "caf\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xed\x9f\xbf",
                           "\xef\xbf\xbf", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_TRUE(IsUtf8(text)) << text;
    EXPECT_EQ(EscapeInvalidUtf8(text), text);
  }
  EXPECT_TRUE(IsUtf8(std::string_view("\0", 1)));
}

TEST(Utf8Test, EscapesBytesThatBelongToNoCharacter) {
  EXPECT_EQ(EscapeInvalidUtf8("caf\xe9"), "caf\\xe9");
  EXPECT_EQ(EscapeInvalidUtf8("\xc0\xaf"), "\\xc0\\xaf");                    // overlong
  EXPECT_EQ(EscapeInvalidUtf8("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // a surrogate
  EXPECT_EQ(EscapeInvalidUtf8("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // above U+10FFFF
  EXPECT_EQ(EscapeInvalidUtf8("\xe2\x82"), "\\xe2\\x82");                    // incomplete
  EXPECT_EQ(EscapeInvalidUtf8("\xff\xc3\xa9\xfe"), "\\xff\xc3\xa9\\xfe");
}

TEST(Utf8Test, WhateverIsEscapedIsText) {
  constexpr uint64_t kUtf8Seed = 11;
  Rng rng(kUtf8Seed);
  for (int i = 0; i < 20000; ++i) {
    std::string bytes(rng.Below(12), '\0');
    for (char& byte : bytes) byte = static_cast<char>(rng.Below(2) == 0 ? 0xC0 + rng.Below(64) : 0x70 + rng.Below(80));
    const std::string text = EscapeInvalidUtf8(bytes);
    ASSERT_TRUE(IsUtf8(text)) << "seed " << kUtf8Seed << ": " << HexOf(bytes);
    ASSERT_EQ(IsUtf8(bytes), text == bytes) << HexOf(bytes);
    EXPECT_THAT(BytesOfHex(HexOf(bytes)), IsOkAndHolds(bytes));
  }
}

TEST(HexTest, RefusesWhatIsNotHexadecimal) {
  EXPECT_THAT(BytesOfHex("0"), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("1 hexadecimal digits")));
  EXPECT_THAT(BytesOfHex("00x1"), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("position 2")));
  EXPECT_THAT(BytesOfHex("+1"), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(BytesOfHex("E9e9"), IsOkAndHolds("\xe9\xe9"));
}

}  // namespace
}  // namespace medley::base
