#include "common/object_store/wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/status.h"
#include "common/base/testing/status_matchers.h"

namespace medley::object_store {
namespace {

using base::StatusIs;
using testing::ElementsAre;
using testing::HasSubstr;

std::string Page(const std::string& inside) {
  return "<?xml version=\"1.0\"?><ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">" + inside +
         "</ListBucketResult>";
}

std::string Contents(const std::string& key, const std::string& size = "1") {
  return "<Contents><Key>" + key + "</Key><Size>" + size + "</Size><ETag>&quot;e&quot;</ETag></Contents>";
}

TEST(WireTest, AListingHasObjectsFoldersAndTheNextPage) {
  const ListingPage page =
      *ParseListing(Page("<EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>"
                         "<NextContinuationToken>t</NextContinuationToken>" +
                         Contents("a%20b+c%2Fd", "12") + "<CommonPrefixes><Prefix>f%C3%BC/</Prefix></CommonPrefixes>"));
  EXPECT_THAT(page.objects, ElementsAre(ListedObject{"a b c/d", 12, "\"e\""}));
  EXPECT_THAT(page.prefixes, ElementsAre("f\xc3\xbc/"));
  EXPECT_EQ(page.next, "t");
}

TEST(WireTest, KeysOfAServerThatDoesNotEncodeThemAreTakenAsTheyAre) {
  EXPECT_EQ(ParseListing(Page(Contents("a%20b+c")))->objects[0].key, "a%20b+c");
}

TEST(WireTest, TheLastPageHasNoNextOne) {
  EXPECT_EQ(
      ParseListing(Page("<IsTruncated>false</IsTruncated><NextContinuationToken>t</NextContinuationToken>"))->next, "");
}

TEST(WireTest, DamagedListingsAreErrors) {
  for (const std::string& body :
       {std::string(), std::string("no xml"), std::string("<html></html>"), Page("<Contents>"),
        Page("<Contents><Key>a</Key></Contents>"), Page(Contents("a", "-1")), Page(Contents("a", "1e3")),
        Page(Contents("a", "99999999999999999999")), Page(Contents("")), Page(Contents(std::string(1025, 'k'))),
        Page("<IsTruncated>true</IsTruncated>"), Page("<EncodingType>url</EncodingType>" + Contents("a%zz")),
        std::string("<!DOCTYPE x [<!ENTITY a \"b\">]>") + Page(Contents("&a;"))}) {
    EXPECT_THAT(ParseListing(body), StatusIs(absl::StatusCode::kInvalidArgument)) << body;
  }
}

TEST(WireTest, APageOfMoreObjectsThanS3EverSendsIsRefused) {
  std::string many;
  for (size_t i = 0; i <= kMostListed; ++i) many += Contents("k" + std::to_string(i));
  EXPECT_THAT(ParseListing(Page(many)), StatusIs(absl::StatusCode::kResourceExhausted));
}

std::string UploadsText(const std::string& body) {
  return "<ListMultipartUploadsResult>" + body + "</ListMultipartUploadsResult>";
}

std::string Upload(const std::string& key, const std::string& id) {
  return "<Upload><Key>" + key + "</Key><UploadId>" + id + "</UploadId><Initiated>x</Initiated></Upload>";
}

TEST(WireTest, UploadsHaveKeysIdsAndTheNextPage) {
  const UploadsPage page = *ParseUploads(
      UploadsText("<EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>" + Upload("a%2Fb+c", "1") +
                  Upload("d", "2") + "<NextKeyMarker>d%20</NextKeyMarker><NextUploadIdMarker>2</NextUploadIdMarker>"));
  EXPECT_THAT(page.uploads, ElementsAre(ListedUpload{"a/b c", "1"}, ListedUpload{"d", "2"}));
  EXPECT_EQ(page.next_key, "d ");
  EXPECT_EQ(page.next_id, "2");
  EXPECT_EQ(ParseUploads(UploadsText("<NextKeyMarker>d</NextKeyMarker>"))->next_key, "") << "the last page";
}

TEST(WireTest, DamagedListingsOfUploadsAreErrors) {
  std::string many;
  for (size_t i = 0; i <= kMostListed; ++i) many += Upload("k", std::to_string(i));
  EXPECT_THAT(ParseUploads(UploadsText(many)), StatusIs(absl::StatusCode::kResourceExhausted));
  for (const std::string& body :
       {std::string(), std::string("no xml"), Page(""), UploadsText("<Upload>"), UploadsText(Upload("", "1")),
        UploadsText(Upload("a", "")), UploadsText(Upload("a", std::string(1025, 'i'))),
        UploadsText(Upload(std::string(1025, 'k'), "1")), UploadsText("<IsTruncated>true</IsTruncated>"),
        UploadsText("<EncodingType>url</EncodingType>" + Upload("a%zz", "1"))}) {
    EXPECT_THAT(ParseUploads(body), StatusIs(absl::StatusCode::kInvalidArgument)) << body;
  }
}

TEST(WireTest, ErrorsAreShortAndVisible) {
  const ErrorText text =
      ParseError("<Error><Code>NoSuchKey</Code><Message>" + std::string(400, 'm') + "\n</Message></Error>");
  EXPECT_EQ(text.code, "NoSuchKey");
  EXPECT_EQ(text.message, std::string(300, 'm'));
  EXPECT_EQ(ParseError("<Error><Message>\xc3\xbc</Message></Error>").message, "??");
  EXPECT_EQ(ParseError("<html>").code, "");
}

TEST(WireTest, ContentRangesAreChecked) {
  const ContentRange range = *ParseContentRange("bytes 2-4/10");
  EXPECT_EQ(range.first, 2);
  EXPECT_EQ(range.last, 4);
  EXPECT_EQ(range.size, 10);
  EXPECT_EQ(ParseContentRange("bytes */10")->size, 10);
  for (const std::string wrong : {"", "bytes", "bytes 0-9/*", "bytes 4-2/10", "bytes 0-10/10", "bytes -1-2/10",
                                  "items 0-1/10", "bytes 0-1/10x", "bytes 0/10", "bytes /10"}) {
    EXPECT_FALSE(ParseContentRange(wrong).ok()) << wrong;
  }
}

TEST(WireTest, PartsAreCountedFromOneAndTagsAreEscaped) {
  EXPECT_EQ(CompleteBody({"\"a\"", "<"}),
            "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>&quot;a&quot;</ETag></Part>"
            "<Part><PartNumber>2</PartNumber><ETag>&lt;</ETag></Part></CompleteMultipartUpload>");
}

TEST(WireTest, SlashesOfAKeyStay) { EXPECT_EQ(EncodeKey("a b/\xc3\xbc+%/"), "a%20b/%C3%BC%2B%25/"); }

}  // namespace
}  // namespace medley::object_store
