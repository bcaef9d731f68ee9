// Test vectors: the IAM ListUsers example of AWS's signing documentation ("Signing AWS API requests",
// AWS General Reference: canonical request hash, derived key and signature), and AWS's signing test
// suite (aws-sig-v4-test-suite: get-vanilla, post-vanilla, get-vanilla-query-order-key-case,
// post-x-www-form-urlencoded; from awslabs/aws-c-auth, tests/aws-signing-test-suite/v4:
// get-vanilla-with-session-token).
#include "common/aws/sigv4.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/status.h"

namespace medley::aws {
namespace {

using testing::Contains;
using testing::Pair;

const Keys kKeys{"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", ""};

base::WallTime Then() { return *base::ParseTime("2015-08-30T12:36:00Z"); }

SigV4 Sign(SignableRequest request, const Keys& keys = kKeys) {
  request.host = "example.amazonaws.com";
  return SignV4(request, keys, "us-east-1", "service", Then());
}

TEST(SigV4Test, SigningKeyOfTheDocumentation) {
  EXPECT_EQ(Hex(SigV4SigningKey(kKeys.secret_access_key, "20150830", "us-east-1", "iam")),
            "c4afb1cc5771d871763a393e44b703571b55cc28424d1a5e86da6ed3c154a4b9");
}

TEST(SigV4Test, ExampleOfTheDocumentation) {
  SignableRequest request;
  request.method = "GET";
  request.host = "iam.amazonaws.com";
  request.query = {{"Version", "2010-05-08"}, {"Action", "ListUsers"}};
  request.headers = {{"Content-Type", "application/x-www-form-urlencoded; charset=utf-8"}};
  const SigV4 signature = SignV4(request, kKeys, "us-east-1", "iam", Then());
  EXPECT_EQ(signature.canonical_request,
            "GET\n/\nAction=ListUsers&Version=2010-05-08\n"
            "content-type:application/x-www-form-urlencoded; charset=utf-8\nhost:iam.amazonaws.com\n"
            "x-amz-date:20150830T123600Z\n\ncontent-type;host;x-amz-date\n"
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(signature.string_to_sign,
            "AWS4-HMAC-SHA256\n20150830T123600Z\n20150830/us-east-1/iam/aws4_request\n"
            "f536975d06c0309214f805bb90ccff089219ecd68b2577efef23edd43b7e1a59");
  EXPECT_THAT(signature.headers,
              Contains(Pair("Authorization",
                            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, "
                            "SignedHeaders=content-type;host;x-amz-date, "
                            "Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7")));
}

TEST(SigV4Test, SuiteGetVanilla) {
  EXPECT_EQ(Sign({.method = "GET"}).signature, "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
}

TEST(SigV4Test, SuitePostVanilla) {
  EXPECT_EQ(Sign({.method = "POST"}).signature, "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b");
}

TEST(SigV4Test, SuiteQueryOrder) {
  EXPECT_EQ(Sign({.method = "GET", .query = {{"Param2", "value2"}, {"Param1", "value1"}}}).signature,
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500");
}

TEST(SigV4Test, SuiteFormPost) {
  const SigV4 signature = Sign(
      {.method = "POST", .headers = {{"Content-Type", "application/x-www-form-urlencoded"}}, .body = "Param1=value1"});
  EXPECT_EQ(Sha256Hex(signature.canonical_request), "42a5e5bb34198acb3e84da4f085bb7927f2bc277ca766e6d19c73c2154021281");
  EXPECT_EQ(signature.signature, "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a");
}

TEST(SigV4Test, SuiteSessionToken) {
  Keys keys = kKeys;
  keys.session_token = "6e86291e8372ff2a2260956d9b8aae1d763fbf315fa00fa31553b73ebf194267";
  const SigV4 signature = Sign({.method = "GET"}, keys);
  EXPECT_EQ(signature.signature, "07ec1639c89043aa0e3e2de82b96708f198cceab042d4a97044c66dd9f74e7f8");
  EXPECT_THAT(signature.headers, Contains(Pair("X-Amz-Security-Token", keys.session_token)));
}

TEST(SigV4Test, HeaderValuesAreTrimmed) {
  const SigV4 wide = Sign({.method = "GET", .headers = {{"X-Other", "  a   b  "}}});
  const SigV4 narrow = Sign({.method = "GET", .headers = {{"x-other", "a b"}}});
  EXPECT_EQ(wide.signature, narrow.signature);
}

// The four examples of "Authenticating Requests: Using the Authorization Header" of the API reference of S3.
SigV4 SignS3(SignableRequest request) {
  request.host = "examplebucket.s3.amazonaws.com";
  request.payload_hash = Sha256Hex(request.body);
  const Keys keys{"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""};
  return SignV4(request, keys, "us-east-1", "s3", *base::ParseTime("2013-05-24T00:00:00Z"));
}

TEST(SigV4Test, S3GetOfARangeHasTheSignatureOfTheReference) {
  const SigV4 signature = SignS3({.method = "GET", .path = "/test.txt", .headers = {{"Range", "bytes=0-9"}}});
  EXPECT_EQ(signature.signature, "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
  EXPECT_THAT(signature.headers, Contains(Pair("X-Amz-Content-Sha256", Sha256Hex(""))));
}

TEST(SigV4Test, S3PutHasTheSignatureOfTheReference) {
  EXPECT_EQ(
      SignS3({.method = "PUT",
              .path = "/test%24file.text",
              .headers = {{"Date", "Fri, 24 May 2013 00:00:00 GMT"}, {"x-amz-storage-class", "REDUCED_REDUNDANCY"}},
              .body = "Welcome to Amazon S3."})
          .signature,
      "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
}

TEST(SigV4Test, S3QueriesHaveTheSignaturesOfTheReference) {
  EXPECT_EQ(SignS3({.method = "GET", .query = {{"lifecycle", ""}}}).signature,
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
  EXPECT_EQ(SignS3({.method = "GET", .query = {{"max-keys", "2"}, {"prefix", "J"}}}).signature,
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

}  // namespace
}  // namespace medley::aws
