#include "localcluster/node/volumes.h"
#include "common/base/testing/temp_dir.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "common/base/file.h"
#include "common/base/testing/status_matchers.h"

namespace medley::kube {
namespace {

namespace fs = std::filesystem;
using base::IsOk;
using base::IsOkAndHolds;
using base::StatusIs;
using testing::HasSubstr;

absl::StatusOr<std::map<std::string, std::string>> Source(DataKind kind, const std::string& name) {
  if (kind == DataKind::kConfigMap && name == "cm") {
    return std::map<std::string, std::string>{{"job.json", R"({"uri":"file:///data/x.csv"})"}, {"other", "o"}};
  }
  if (kind == DataKind::kSecret && name == "sec") return std::map<std::string, std::string>{{"token", "/data"}};
  return base::NotFound("'{}' not found", name);
}

class VolumesTest : public testing::Test {
 protected:
  void SetUp() override {
    auto folder = base::MakeTempDir("volumes_test");
    ASSERT_THAT(folder, IsOk());
    folder_ = *folder;
  }
  void TearDown() override { base::RemoveTempDir(folder_); }
  absl::StatusOr<std::map<std::string, std::string>> Make(const std::string& volumes,
                                                          const std::string& mounts = "[]") {
    const Object pod(Json{{"metadata", {{"name", "p"}, {"namespace", "n"}}},
                          {"spec",
                           {{"volumes", Json::parse(volumes)},
                            {"containers", {{{"name", "c"}, {"volumeMounts", Json::parse(mounts)}}}}}}});
    return MakeVolumes(pod, {folder_ / "pod", folder_ / "claims"}, Source);
  }
  fs::path folder_;
};

TEST_F(VolumesTest, FilesFoldersAndHostPaths) {
  const auto paths = Make(R"([{"name": "cfg", "configMap": {"name": "cm"}},
                              {"name": "tok", "secret": {"secretName": "sec", "defaultMode": 288}},
                              {"name": "tmp", "emptyDir": {}},
                              {"name": "data", "hostPath": {"path": "/usr"}},
                              {"name": "keep", "persistentVolumeClaim": {"claimName": "ckpt"}}])",
                          R"([{"name": "data", "mountPath": "/data"}])");
  ASSERT_THAT(paths, IsOk());
  EXPECT_THAT(base::ReadFile(fs::path(paths->at("cfg")) / "job.json"), IsOkAndHolds(R"({"uri":"file:///usr/x.csv"})"));
  EXPECT_THAT(base::ReadFile(fs::path(paths->at("tok")) / "token"),
              IsOkAndHolds("/data"));  // never rewritten
  struct stat info = {};
  ASSERT_EQ(stat((paths->at("tok") + "/token").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0400u);  // other users of this machine get no rights, whatever the mode says
  ASSERT_EQ(stat(paths->at("tok").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0700u);
  EXPECT_TRUE(fs::is_directory(paths->at("tmp")));
  EXPECT_EQ(paths->at("data"), "/usr");
  EXPECT_EQ(paths->at("keep"), (folder_ / "claims" / "n" / "ckpt").string());
  EXPECT_TRUE(fs::is_directory(paths->at("keep")));
}

TEST_F(VolumesTest, ItemsChooseAndRename) {
  const auto paths =
      Make(R"([{"name": "cfg", "configMap": {"name": "cm", "items": [{"key": "other", "path": "a/b"}]}}])");
  ASSERT_THAT(paths, IsOk());
  EXPECT_THAT(base::ReadFile(fs::path(paths->at("cfg")) / "a" / "b"), IsOkAndHolds("o"));
  EXPECT_FALSE(fs::exists(fs::path(paths->at("cfg")) / "job.json"));
}

TEST_F(VolumesTest, WhatIsMissingIsNamed) {
  EXPECT_THAT(Make(R"([{"name": "v", "configMap": {"name": "missing"}}])"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("volume 'v': configmap 'missing'")));
  EXPECT_THAT(Make(R"([{"name": "v", "configMap": {"name": "missing", "optional": true}}])"), IsOk());
  EXPECT_THAT(Make(R"([{"name": "v", "configMap": {"name": "cm", "items": [{"key": "k", "path": "p"}]}}])"),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(Make(R"([{"name": "v", "hostPath": {"path": "/no/such", "type": "Directory"}}])"),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(Make(R"([{"name": "v", "nfs": {}}])"), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Make(R"([{"name": "v", "configMap": {"name": "cm", "items": [{"key": "other", "path": "../x"}]}}])"),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace medley::kube
