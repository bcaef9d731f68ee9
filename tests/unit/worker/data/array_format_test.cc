#include "worker/data/array_format.h"

#include <gmock/gmock.h>

#include <random>

#include "common/base/status.h"
#include "common/base/testing/status_matchers.h"
#include "tests/unit/worker/data/array_bytes.h"

namespace medley::worker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ArrayFormatTest, ReadsHeadersOfIdx) {
  const auto header = ParseIdx(IdxBytes(0x08, {60000, 28, 28}, "xyz"));
  ASSERT_THAT(header, base::IsOk());
  EXPECT_EQ(header->type, ElementType::kUint8);
  EXPECT_THAT(header->sizes, ElementsAre(60000, 28, 28));
  EXPECT_EQ(header->bytes, 16U);
  EXPECT_EQ(ParseIdx(IdxBytes(0x0d, {2}, ""))->type, ElementType::kFloat32);
}

TEST(ArrayFormatTest, ReadsHeadersOfNpy) {
  for (const int version : {1, 2, 3}) {
    const auto header = ParseNpy(NpyBytes("<i8", "(5, 3)", "", "False", version));
    ASSERT_THAT(header, base::IsOk());
    EXPECT_EQ(header->type, ElementType::kInt64);
    EXPECT_FALSE(header->big_endian);
    EXPECT_THAT(header->sizes, ElementsAre(5, 3));
    EXPECT_EQ(header->bytes % 64, 0U);
  }
  EXPECT_THAT(ParseNpy(NpyBytes(">f4", "(7,)", ""))->sizes, ElementsAre(7));
  EXPECT_TRUE(ParseNpy(NpyBytes(">f4", "(7,)", ""))->big_endian);
  EXPECT_EQ(ParseNpy(NpyBytes("|b1", "(7,)", ""))->type, ElementType::kBool);
}

TEST(ArrayFormatTest, RefusesHeadersWithASentence) {
  const auto idx = [](const std::string& bytes) { return base::Message(ParseIdx(bytes).status()); };
  const auto npy = [](const std::string& bytes) { return base::Message(ParseNpy(bytes).status()); };
  EXPECT_THAT(idx(""), HasSubstr("it is no IDX file"));
  EXPECT_THAT(idx("PK\x03\x04"), HasSubstr("it is no IDX file"));
  EXPECT_THAT(idx(IdxBytes(0x07, {2}, "")), HasSubstr("unknown element type 0x07"));
  EXPECT_THAT(idx(IdxBytes(0x08, {}, "")), HasSubstr("has 0 axes"));
  EXPECT_THAT(idx(IdxBytes(0x08, {2, 2}, "").substr(0, 10)), HasSubstr("ends within its header"));
  EXPECT_THAT(idx(IdxBytes(0x08, {0xffffffff, 0xffffffff, 0xffffffff}, "")), HasSubstr("sizes are absurd"));
  EXPECT_THAT(npy("hello"), HasSubstr("it is no NPY file"));
  EXPECT_THAT(npy(NpyBytes("<f2", "(3,)", "")), HasSubstr("elements of type '<f2'"));
  EXPECT_THAT(npy(NpyBytes("|O", "(3,)", "")), HasSubstr("elements of type '|O'"));
  EXPECT_THAT(npy(NpyBytes("<f4", "(3, 4)", "", "True")), HasSubstr("numpy.ascontiguousarray"));
  EXPECT_THAT(npy(NpyBytes("<f4", "()", "")), HasSubstr("no axes"));
  EXPECT_THAT(npy(NpyBytes("<f4", "(3, -4)", "")), HasSubstr("shape is no list"));
  EXPECT_THAT(npy(NpyBytes("<f4", "(99999999999999999999,)", "")), HasSubstr("shape is no list"));
  EXPECT_THAT(npy(NpyBytes("<f4", "(9000000000, 9000000000)", "")), HasSubstr("sizes are absurd"));
  EXPECT_THAT(npy(NpyBytes("<f4", "(3,), 'more': 1", "")), HasSubstr("'more'"));
  EXPECT_THAT(npy(NpyBytes("<f4", "(3,)", "").substr(0, 40)), HasSubstr("ends within its header"));
  EXPECT_THAT(npy(NpyBytes("<f4", "(3,)", "", "False", 9)), HasSubstr("format version 9"));
  EXPECT_THAT(npy(NpyText("{'shape': (3,)}")), HasSubstr("lacks descr"));
  EXPECT_THAT(npy(NpyText("__import__('os')")), HasSubstr("no '{'"));
}

TEST(ArrayFormatTest, NoDamagedHeaderCrashes) {
  std::mt19937_64 random(7);
  const std::string idx = IdxBytes(0x0c, {3, 2}, ""), npy = NpyBytes("<f8", "(3, 2)", "");
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = i % 2 == 0 ? idx : npy;
    for (int k = 0; k < 3; ++k) bytes[random() % bytes.size()] = static_cast<char>(random());
    bytes.resize(random() % (bytes.size() + 1));
    const auto header = i % 2 == 0 ? ParseIdx(bytes) : ParseNpy(bytes);
    if (!header.ok()) {
      EXPECT_FALSE(header.status().message().empty());
      continue;
    }
    EXPECT_LE(header->bytes, bytes.size());
    EXPECT_FALSE(header->sizes.empty());
  }
}

TEST(ArrayFormatTest, ReadsElementsOfEveryTypeAndOrder) {
  EXPECT_EQ(ElementAt("\xff\x02", 0, ElementType::kUint8, false), 255);
  EXPECT_EQ(ElementAt("\xff\x02", 0, ElementType::kInt8, false), -1);
  EXPECT_EQ(ElementAt("\x01\x00\xfe\xff", 1, ElementType::kInt16, false), -2);
  EXPECT_EQ(ElementAt(std::string("\x00\x00\x01\x02", 4).data(), 0, ElementType::kInt32, true), 258);
  EXPECT_EQ(ElementAt(std::string("\x00\x00\xc0\x3f", 4).data(), 0, ElementType::kFloat32, false), 1.5);
  EXPECT_EQ(ElementAt(std::string("\x3f\xf8\x00\x00\x00\x00\x00\x00", 8).data(), 0, ElementType::kFloat64, true), 1.5);
  EXPECT_EQ(ElementAt(std::string("\x07\x00\x00\x00\x00\x00\x00\x00", 8).data(), 0, ElementType::kInt64, false), 7);
}

}  // namespace
}  // namespace medley::worker
