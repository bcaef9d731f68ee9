#include "common/object_store/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"

namespace medley::object_store {
namespace {

using base::StatusIs;
using testing::HasSubstr;
using testing::Not;

absl::StatusOr<Settings> Read(const std::map<std::string, std::string>& variables) {
  return ReadSettings([&](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

TEST(SettingsTest, NoVariablesMeanAwsWithoutKeys) {
  const Settings settings = *Read({});
  EXPECT_EQ(settings.endpoint, "");
  EXPECT_EQ(settings.region, "us-east-1");
  EXPECT_FALSE(settings.path_style);
  EXPECT_EQ(settings.keys.access_key_id, "");
}

TEST(SettingsTest, TheVariablesOfAwsToolsAreRead) {
  const Settings settings = *Read({{"AWS_ACCESS_KEY_ID", "id\n"},
                                   {"AWS_SECRET_ACCESS_KEY", " secret\r\n"},
                                   {"AWS_DEFAULT_REGION", "eu-west-1"},
                                   {"AWS_ENDPOINT_URL", "https://minio:9000/"},
                                   {"MEDLEY_S3_PATH_STYLE", "1"}});
  EXPECT_EQ(settings.keys.access_key_id, "id");
  EXPECT_EQ(settings.keys.secret_access_key, "secret");
  EXPECT_EQ(settings.region, "eu-west-1");
  EXPECT_EQ(settings.endpoint, "https://minio:9000");
  EXPECT_TRUE(settings.path_style);
}

TEST(SettingsTest, AMistakeNamesTheVariableAndNotItsValue) {
  const auto refused = [](const std::map<std::string, std::string>& variables, const std::string& name) {
    const absl::Status status = Read(variables).status();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument)) << name;
    EXPECT_THAT(base::Message(status), HasSubstr(name));
    EXPECT_THAT(base::Message(status), Not(HasSubstr("hush")));
  };
  refused({{"AWS_ACCESS_KEY_ID", "id"}}, "AWS_SECRET_ACCESS_KEY");
  refused({{"AWS_SECRET_ACCESS_KEY", "hush"}}, "AWS_ACCESS_KEY_ID");
  refused({{"AWS_ACCESS_KEY_ID", "id"}, {"AWS_SECRET_ACCESS_KEY", "hush\nX-Evil: 1"}}, "AWS_SECRET_ACCESS_KEY");
  refused({{"AWS_ENDPOINT_URL_S3", "minio:9000"}}, "AWS_ENDPOINT_URL_S3");
  refused({{"AWS_ENDPOINT_URL_S3", "https://user:hush@minio"}}, "AWS_ENDPOINT_URL_S3");
  refused({{"AWS_ENDPOINT_URL_S3", "https://"}}, "AWS_ENDPOINT_URL_S3");
  refused({{"MEDLEY_S3_PATH_STYLE", "yes"}}, "MEDLEY_S3_PATH_STYLE");
  refused({{"GS_OAUTH_TOKEN", "hush"}, {"GS_ENDPOINT_URL", "http://gs"}}, "GS_OAUTH_TOKEN");
}

TEST(SettingsTest, FilesOfAMountedSecretComeBeforeVariablesAndOnlyKeysAreRead) {
  const std::filesystem::path folder = *base::MakeTempDir("storage-keys");
  for (const auto& [name, text] : {std::pair("AWS_ACCESS_KEY_ID", "of-file\n"), std::pair("AWS_REGION", "of-file")}) {
    ASSERT_THAT(base::WriteFileAtomic(folder / name, text), base::IsOk());
  }
  const GetVariable get = WithKeyFiles([&](const char* name) -> std::optional<std::string> {
    if (std::string(name) == "MEDLEY_STORAGE_KEYS_DIR") return folder.string();
    return std::string(name) == "AWS_SECRET_ACCESS_KEY" || std::string(name) == "AWS_ACCESS_KEY_ID"
               ? std::optional<std::string>("of-variable")
               : std::nullopt;
  });
  const Settings settings = *ReadSettings(get);
  EXPECT_EQ(settings.keys.access_key_id, "of-file");
  EXPECT_EQ(settings.keys.secret_access_key, "of-variable");
  EXPECT_EQ(settings.region, "us-east-1");
  base::RemoveTempDir(folder);
}

TEST(SettingsTest, AMissingFileOfAuthoritiesIsNamed) {
  EXPECT_THAT(base::Message(Read({{"AWS_CA_BUNDLE", "/does/not/exist.pem"}}).status()), HasSubstr("AWS_CA_BUNDLE"));
}

}  // namespace
}  // namespace medley::object_store
