#include "common/object_store/location.h"

#include <gtest/gtest.h>

#include "common/base/testing/status_matchers.h"

namespace medley::object_store {
namespace {

using base::StatusIs;

TEST(LocationTest, AddressesAreTakenApart) {
  EXPECT_EQ(*ParseLocation("s3://bucket/train/part 1+%.csv"), (Location{Scheme::kS3, "bucket", "train/part 1+%.csv"}));
  EXPECT_EQ(*ParseLocation("gs://my.bucket_1"), (Location{Scheme::kGs, "my.bucket_1", ""}));
  EXPECT_EQ(*ParseLocation("https://host:8443/a/b.csv?sig=x/../y"),
            (Location{Scheme::kHttps, "host:8443", "a/b.csv?sig=x/../y"}));
}

TEST(LocationTest, ANameHasNoQueryWhichMayHoldASignature) {
  EXPECT_EQ(NameOf(*ParseLocation("https://host/a.csv?X-Amz-Signature=secret")), "https://host/a.csv");
  EXPECT_EQ(NameOf(*ParseLocation("s3://bucket/a?b")), "s3://bucket/a?b");
}

TEST(LocationTest, AddressesThatNoStoreHasAreRefused) {
  const std::string long_key(1025, 'k');
  for (const std::string& uri :
       {std::string("file:///data"), std::string("http://host/a"), std::string("s3:///key"), std::string("s3://b/key"),
        std::string("s3://bucket/a//b"), std::string("s3://bucket//a"), std::string("s3://bucket/a/../b"),
        std::string("s3://bucket/."), std::string("s3://buck\net/a"), std::string("s3://bucket/a\r\nHost: x"),
        std::string("s3://user@bucket/a"), "s3://bucket/" + long_key, std::string("https:///a"),
        std::string("https://user:password@host/a"), std::string("https://host/a b"), std::string("https://host/a#b"),
        std::string("S3://bucket/a"), std::string()}) {
    EXPECT_THAT(ParseLocation(uri), StatusIs(absl::StatusCode::kInvalidArgument)) << uri;
  }
}

TEST(LocationTest, OnlyThreeSchemesAreRemote) {
  EXPECT_TRUE(IsRemote("s3://x") && IsRemote("gs://x") && IsRemote("https://x"));
  EXPECT_FALSE(IsRemote("/data/s3://x") || IsRemote("file:///x") || IsRemote("http://x") || IsRemote("s3:/x"));
}

}  // namespace
}  // namespace medley::object_store
