#include "common/tf_record/tf_record.h"

#include <gmock/gmock.h>

#include "common/base/testing/status_matchers.h"

namespace medley::tf_record {
namespace {

using base::StatusIs;
using testing::HasSubstr;

TEST(TfRecordTest, HasCastagnolisChecksum) {
  EXPECT_EQ(Crc32c("123456789"), 0xE3069283U);
  EXPECT_EQ(Crc32c(""), 0U);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8A9136AAU);  // RFC 3720, B.4
  EXPECT_EQ(Crc32c(std::string(32, '\xFF')), 0x62A8AB43U);
}

TEST(TfRecordTest, ReadsWhatItWrites) {
  const std::string bytes = TfRecord("first") + TfRecord("") + TfRecord("third");
  std::string_view rest = bytes;
  for (const std::string_view expected : {"first", "", "third"}) {
    const auto record = ReadFirst(rest, 100);
    ASSERT_THAT(record, base::IsOk());
    ASSERT_TRUE(record->has_value());
    EXPECT_EQ((*record)->data, expected);
    rest.remove_prefix((*record)->size);
  }
  EXPECT_TRUE(rest.empty());
}

TEST(TfRecordTest, WaitsForTheRestOfARecord) {
  const std::string bytes = TfRecord("some data");
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto record = ReadFirst(std::string_view(bytes).substr(0, size), 100);
    ASSERT_THAT(record, base::IsOk());
    EXPECT_FALSE(record->has_value()) << size;
  }
}

TEST(TfRecordTest, EachDamagedByteIsFound) {
  const std::string bytes = TfRecord("some data");
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] ^= 4;
    EXPECT_THAT(ReadFirst(damaged, 100).status(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("checksum"))) << at;
  }
}

// An image, for example, of which only the length is needed.
TEST(TfRecordTest, ALongRecordIsSkippedBeforeItIsWhole) {
  const std::string bytes = TfRecord(std::string(1000, 'x'));
  const auto record = ReadFirst(std::string_view(bytes).substr(0, 12), 999);
  ASSERT_THAT(record, base::IsOk());
  ASSERT_TRUE(record->has_value());
  EXPECT_EQ((*record)->data, std::nullopt);
  EXPECT_EQ((*record)->size, bytes.size());
}

}  // namespace
}  // namespace medley::tf_record
