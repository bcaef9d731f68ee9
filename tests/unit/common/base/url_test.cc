#include "common/base/url.h"

#include "common/base/rng.h"

namespace medley::base {
namespace {

constexpr uint64_t kSeed = 20261122;

std::string RandomBytes(Rng& rng) {
  std::string text;
  for (uint64_t n = rng.Below(40); n > 0; --n) text += static_cast<char>(rng.Below(256));
  return text;
}

TEST(UrlTest, EncodesEverythingButUnreservedCharacters) {
  EXPECT_EQ(UrlEncode("AZaz09-._~"), "AZaz09-._~");
  EXPECT_EQ(UrlEncode("a b/c?d=e&f+g%\xff"), "a%20b%2Fc%3Fd%3De%26f%2Bg%25%FF");
  EXPECT_EQ(QueryEncode({{"a", "b c"}, {"$filter", "x eq 'y'/+~"}}), "a=b%20c&%24filter=x%20eq%20%27y%27%2F%2B~");
}

TEST(UrlTest, DecodesPathsAndQueries) {
  EXPECT_EQ(UrlDecode("a%20b+c%2f"), "a b+c/");
  EXPECT_EQ(QueryDecode("a=1&&b=x+y%3D&c&=d&a=2"),
            (QueryFields{{"a", "1"}, {"b", "x y="}, {"c", ""}, {"", "d"}, {"a", "2"}}));
  EXPECT_EQ(QueryDecode(""), QueryFields());
}

TEST(UrlTest, RefusesBrokenEscapes) {
  for (const char* text : {"%", "a%", "%4", "%4g", "%g4", "%%41", "% 41"}) {
    EXPECT_EQ(UrlDecode(text), std::nullopt) << text;
    EXPECT_EQ(QueryDecode(std::string("a=") + text), std::nullopt) << text;
    EXPECT_EQ(QueryDecode(std::string(text) + "=a"), std::nullopt) << text;
  }
}

TEST(UrlTest, AnyBytesSurviveARoundTrip) {
  Rng rng(kSeed);
  for (int i = 0; i < 2000; ++i) {
    const std::string text = RandomBytes(rng);
    EXPECT_EQ(UrlDecode(UrlEncode(text)), text) << "seed " << kSeed << ", round " << i;
    QueryFields fields;
    for (uint64_t n = rng.Below(5); n > 0; --n) fields.emplace_back(RandomBytes(rng), RandomBytes(rng));
    EXPECT_EQ(QueryDecode(QueryEncode(fields)), fields) << "seed " << kSeed << ", round " << i;
  }
}

// Decoding takes any bytes, and what it accepts means the same when it is encoded again.
TEST(UrlTest, MutatedTextIsDecodedOrRefused) {
  Rng rng(kSeed);
  int decoded = 0;
  for (int i = 0; i < 5000; ++i) {
    std::string text = UrlEncode(RandomBytes(rng));
    for (uint64_t n = rng.Below(3); n > 0 && !text.empty(); --n) {
      text[rng.Below(text.size())] = static_cast<char>(rng.Below(256));
    }
    const auto value = UrlDecode(text);
    if (!value) continue;
    ++decoded;
    EXPECT_LE(value->size(), text.size());
    EXPECT_EQ(UrlDecode(UrlEncode(*value)), value) << "seed " << kSeed << ", round " << i;
  }
  EXPECT_GT(decoded, 500);
  EXPECT_LT(decoded, 5000);
}

}  // namespace
}  // namespace medley::base
