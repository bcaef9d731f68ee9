#include "localcluster/node/mounts.h"

#include <gtest/gtest.h>

#include "common/base/testing/status_matchers.h"

namespace medley::localcluster {
namespace {

using base::StatusIs;

const std::vector<Mount> kMounts = {{"data", "/data", "/root/v/data"}, {"deep", "/data/deep", "/host/deep"}};

TEST(MountsTest, RewritesWherePathsBeginAndNamesEnd) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"/data", "/root/v/data"},
      {"/data/a.csv", "/root/v/data/a.csv"},
      {"--in=/data/a,/data/b", "--in=/root/v/data/a,/root/v/data/b"},
      {"file:///data/a.csv", "file:///root/v/data/a.csv"},
      {R"({"uri":"/data/x"})", R"({"uri":"/root/v/data/x"})"},
      {"/data/deep/x", "/host/deep/x"},
      {"/data/deeper", "/root/v/data/deeper"},
      {"/srv/data/x", "/srv/data/x"},
      {"/database", "/database"},
      {"/data.bak", "/data.bak"},
      {"./data/x", "./data/x"},
      {"http://data/x", "http://data/x"},
      {"", ""},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(RewritePaths(text, kMounts), expected);
}

TEST(MountsTest, WhatWasRewrittenIsNotRewrittenAgain) {
  EXPECT_EQ(RewritePaths("/a /b", {{"x", "/a", "/b"}, {"y", "/b", "/a"}}), "/b /a");
}

TEST(MountsTest, ContainerMountsHaveRealPathsWithSubPath) {
  const kube::Json container = {
      {"volumeMounts",
       {{{"name", "v"}, {"mountPath", "/data/"}}, {{"name", "v"}, {"mountPath", "/cfg"}, {"subPath", "a/b"}}}}};
  const auto mounts = ContainerMounts(container, {{"v", "/real"}});
  ASSERT_THAT(mounts, base::IsOk());
  EXPECT_EQ((*mounts)[0].mount_path, "/data");
  EXPECT_EQ((*mounts)[0].real_path, "/real");
  EXPECT_EQ((*mounts)[1].real_path, "/real/a/b");
}

TEST(MountsTest, RefusesWhatCannotBeMounted) {
  const auto one = [](kube::Json mount) { return kube::Json{{"volumeMounts", kube::Json::array({std::move(mount)})}}; };
  const std::map<std::string, std::string> volumes = {{"v", "/real"}};
  for (const kube::Json& bad :
       {one({{"name", "other"}, {"mountPath", "/d"}}), one({{"name", "v"}, {"mountPath", "d"}}),
        one({{"name", "v"}, {"mountPath", "/"}}), one({{"name", "v"}, {"mountPath", "/d"}, {"subPath", "../up"}}),
        one({{"name", "v"}, {"mountPath", "/d"}, {"subPath", "a/../../up"}})}) {
    EXPECT_THAT(ContainerMounts(bad, volumes), StatusIs(absl::StatusCode::kInvalidArgument)) << bad.dump();
  }
}

TEST(MountsTest, VariableNames) { EXPECT_EQ(MountVariable("my-data.1"), "MEDLEY_MOUNT_MY_DATA_1"); }

}  // namespace
}  // namespace medley::localcluster
