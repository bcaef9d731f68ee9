#include "scheduler-service/feeds/aws_credentials.h"
#include "common/base/testing/temp_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "common/base/file.h"
#include "common/base/testing/status_matchers.h"
#include "scheduler-service/feeds/testing/fake_fetcher.h"

namespace medley::sched {
namespace {

using absl::StatusCode;
using base::StatusIs;
using testing::HasSubstr;
using testing::SizeIs;

// The example in the documentation of STS.
std::string AssumeRoleBody(const std::string& key, const std::string& expires) {
  return "<AssumeRoleWithWebIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">\n"
         "  <AssumeRoleWithWebIdentityResult>\n    <Audience>client</Audience>\n"
         "    <AssumedRoleUser><Arn>arn</Arn><AssumedRoleId>id</AssumedRoleId></AssumedRoleUser>\n"
         "    <Credentials>\n      <SessionToken>session</SessionToken>\n"
         "      <SecretAccessKey>secret</SecretAccessKey>\n      <Expiration>" +
         expires + "</Expiration>\n      <AccessKeyId>" + key +
         "</AccessKeyId>\n    </Credentials>\n  </AssumeRoleWithWebIdentityResult>\n"
         "</AssumeRoleWithWebIdentityResponse>";
}

class AwsCredentialsTest : public testing::Test {
 protected:
  void SetUp() override { folder_ = *base::MakeTempDir("aws-credentials"); }
  void TearDown() override { base::RemoveTempDir(folder_); }

  std::unique_ptr<AwsCredentials> Make(AwsCredentialOptions options = {}) {
    options.sts_endpoint = "https://sts.example";
    return MakeAwsCredentials(std::move(options), fetcher_, [this](const std::string& name) { return env_[name]; });
  }
  std::string File(const std::string& name, const std::string& text) {
    EXPECT_TRUE(base::WriteFileAtomic(folder_ / name, text).ok());
    return folder_ / name;
  }

  std::map<std::string, std::string> env_;
  std::filesystem::path folder_;
  std::vector<FetchRequest> requests_;
  FetchReply reply_;
  FakeFetcher fetcher_{[this](const FetchRequest&) { return reply_; }, requests_};
  base::WallTime now_ = *base::ParseTime("2026-08-01T00:00:00Z");
};

TEST_F(AwsCredentialsTest, Environment) {
  env_ = {{"AWS_ACCESS_KEY_ID", "A"}, {"AWS_SECRET_ACCESS_KEY", "S"}, {"AWS_SESSION_TOKEN", "T"}};
  const auto keys = Make()->Get(now_, {});
  ASSERT_THAT(keys, base::IsOk());
  EXPECT_EQ(keys->access_key_id, "A");
  EXPECT_EQ(keys->session_token, "T");
  env_["AWS_SECRET_ACCESS_KEY"] = "";
  EXPECT_THAT(Make()->Get(now_, {}), StatusIs(StatusCode::kUnauthenticated, HasSubstr("AWS_SECRET_ACCESS_KEY")));
}

TEST_F(AwsCredentialsTest, NothingIsConfigured) {
  env_["HOME"] = folder_ / "nowhere";
  EXPECT_THAT(Make()->Get(now_, {}), StatusIs(StatusCode::kUnauthenticated, HasSubstr("no AWS credentials")));
  EXPECT_THAT(Make({.kind = "file"})->Get(now_, {}), StatusIs(StatusCode::kUnauthenticated, HasSubstr("nowhere")));
  EXPECT_THAT(Make({.kind = "web-identity"})->Get(now_, {}),
              StatusIs(StatusCode::kUnauthenticated, HasSubstr("AWS_ROLE_ARN")));
}

TEST_F(AwsCredentialsTest, SharedFileIsReadAgain) {
  env_["AWS_SHARED_CREDENTIALS_FILE"] = File("credentials",
                                             "# comment\n[default]\naws_access_key_id = A\naws_secret_access_key=S\n"
                                             "[ team ]\naws_access_key_id = B\naws_secret_access_key = S=\n"
                                             "aws_session_token = T\n");
  const auto credentials = Make();
  EXPECT_EQ(credentials->Get(now_, {})->access_key_id, "A");
  env_["AWS_PROFILE"] = "team";
  EXPECT_EQ(credentials->Get(now_, {})->secret_access_key, "S=");
  env_["AWS_PROFILE"] = "other";
  EXPECT_THAT(credentials->Get(now_, {}), StatusIs(StatusCode::kUnauthenticated, HasSubstr("no profile 'other'")));
  File("credentials", "[other]\naws_access_key_id = C\n");
  EXPECT_THAT(credentials->Get(now_, {}), StatusIs(StatusCode::kUnauthenticated, HasSubstr("aws_secret_access_key")));
  File("credentials", "[other]\r\naws_access_key_id = C\r\naws_secret_access_key = S\r\n");
  EXPECT_EQ(credentials->Get(now_, {})->access_key_id, "C");
}

TEST_F(AwsCredentialsTest, WebIdentityIsRefreshedBeforeItExpires) {
  env_ = {{"AWS_ROLE_ARN", "arn:aws:iam::1:role/prices"}, {"AWS_WEB_IDENTITY_TOKEN_FILE", File("token", "jwt-1\n")}};
  const auto credentials = Make();
  reply_ = {.code = 200, .body = AssumeRoleBody("K1", "2026-08-01T01:00:00Z")};
  EXPECT_EQ(credentials->Get(now_, {})->access_key_id, "K1");
  ASSERT_THAT(requests_, SizeIs(1));
  EXPECT_EQ(requests_[0].url, "https://sts.example/");
  EXPECT_THAT(*requests_[0].form, HasSubstr("WebIdentityToken=jwt-1"));
  EXPECT_THAT(*requests_[0].form, HasSubstr("RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fprices"));
  // Cached for 55 of its 60 minutes.
  File("token", "jwt-2");
  reply_.body = AssumeRoleBody("K2", "2026-08-01T02:00:00Z");
  EXPECT_EQ(credentials->Get(now_ + std::chrono::minutes(54), {})->access_key_id, "K1");
  EXPECT_THAT(requests_, SizeIs(1));
  EXPECT_EQ(credentials->Get(now_ + std::chrono::minutes(55), {})->access_key_id, "K2");
  EXPECT_THAT(*requests_.back().form, HasSubstr("jwt-2"));  // read again
  // Forget drops rejected keys.
  credentials->Forget();
  reply_.body = AssumeRoleBody("K3", "2026-08-01T03:00:00Z");
  EXPECT_EQ(credentials->Get(now_ + std::chrono::minutes(56), {})->access_key_id, "K3");
}

TEST_F(AwsCredentialsTest, WebIdentityOutlivesAnOutageOfSts) {
  env_ = {{"AWS_ROLE_ARN", "arn"}, {"AWS_WEB_IDENTITY_TOKEN_FILE", File("token", "jwt")}};
  const auto credentials = Make();
  reply_ = {.code = 200, .body = AssumeRoleBody("K1", "2026-08-01T01:00:00Z")};
  ASSERT_THAT(credentials->Get(now_, {}), base::IsOk());
  reply_ = {.code = 503, .body = ""};
  EXPECT_EQ(credentials->Get(now_ + std::chrono::minutes(58), {})->access_key_id, "K1");
  EXPECT_THAT(credentials->Get(now_ + std::chrono::minutes(60), {}), StatusIs(StatusCode::kUnavailable));
  // If the clock steps back, keys that were fetched "in the future" are not used.
  reply_ = {.code = 200, .body = AssumeRoleBody("K2", "2026-08-01T01:00:00Z")};
  EXPECT_EQ(credentials->Get(now_ - std::chrono::hours(2), {})->access_key_id, "K2");
}

TEST_F(AwsCredentialsTest, InvalidResponsesOfSts) {
  EXPECT_THAT(ParseAssumeRole("<a/>"), StatusIs(StatusCode::kInvalidArgument, HasSubstr("AccessKeyId")));
  EXPECT_THAT(ParseAssumeRole(AssumeRoleBody("K", "soon")),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("Expiration: 'soon'")));
  EXPECT_THAT(ParseAssumeRole("{}"), StatusIs(StatusCode::kInvalidArgument, HasSubstr("not XML")));
}

}  // namespace
}  // namespace medley::sched
