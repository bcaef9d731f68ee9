#include "localcluster/node/volumes.h"
#include "common/base/testing/temp_dir.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "common/base/file.h"
#include "common/base/testing/status_matchers.h"

namespace medley::localcluster {
namespace {

namespace fs = std::filesystem;
using base::IsOk;
using base::IsOkAndHolds;
using base::StatusIs;
using testing::HasSubstr;

absl::StatusOr<std::map<std::string, std::string>> SourceOf(DataKind kind, const std::string& name) {
  if (kind == DataKind::kConfigMap && name == "cm") {
    return std::map<std::string, std::string>{{"job.json", R"({"uri":"file:///data/x.csv"})"}, {"other", "o"}};
  }
  if (kind == DataKind::kConfigMap && name == "up") return std::map<std::string, std::string>{{"../../up", "x"}};
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
    const kube::Object pod(
        kube::Json{{"metadata", {{"name", "p"}, {"namespace", "n"}}},
                   {"spec",
                    {{"volumes", kube::Json::parse(volumes)},
                     {"containers", {{{"name", "c"}, {"volumeMounts", kube::Json::parse(mounts)}}}}}}});
    return MakeVolumes(pod, {folder_ / "pod", folder_ / "claims"}, SourceOf);
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

TEST_F(VolumesTest, NamesThatLeadOutOfTheFolderAreRefused) {
  for (const char* volume :
       {R"([{"name": "..", "emptyDir": {}}])", R"([{"name": ".", "emptyDir": {}}])",
        R"([{"name": "v", "persistentVolumeClaim": {"claimName": "../../../x"}}])",
        R"([{"name": "v", "persistentVolumeClaim": {"claimName": "/etc"}}])",
        R"([{"name": "v", "persistentVolumeClaim": {"claimName": ".."}}])",
        R"([{"name": "v", "persistentVolumeClaim": {}}])", R"([{"name": "v", "configMap": {"name": "up"}}])"}) {
    EXPECT_THAT(Make(volume), StatusIs(absl::StatusCode::kInvalidArgument)) << volume;
  }
  EXPECT_FALSE(fs::exists(folder_ / "pod" / "up"));
}

// A pod of an earlier run has put a link in the place of its claim; another pod mounts the claim.
TEST_F(VolumesTest, AVolumeThatIsALinkIsNotFollowed) {
  fs::create_directories(folder_ / "user");
  fs::create_directories(folder_ / "claims" / "n");
  fs::create_directory_symlink(folder_ / "user", folder_ / "claims" / "n" / "ckpt");
  EXPECT_THAT(Make(R"([{"name": "keep", "persistentVolumeClaim": {"claimName": "ckpt"}}])"),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("claims/n/ckpt: it is a symbolic link")));
  fs::create_directories(folder_ / "pod" / "volumes");
  fs::create_directory_symlink(folder_ / "user", folder_ / "pod" / "volumes" / "cfg");
  EXPECT_THAT(Make(R"([{"name": "cfg", "configMap": {"name": "cm"}}])"),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("symbolic link")));
  EXPECT_TRUE(fs::is_empty(folder_ / "user"));
}

TEST_F(VolumesTest, EachStartChecksThatMountsAreInTheirVolumes) {
  fs::create_directories(folder_ / "user" / "set");
  fs::create_directories(folder_ / "host" / "inside");
  fs::create_directory_symlink(folder_ / "host", folder_ / "host-link");
  fs::create_directory_symlink(folder_ / "user", folder_ / "host" / "out");
  fs::create_directory_symlink("inside", folder_ / "host" / "in");
  fs::create_symlink(folder_ / "user" / "new", folder_ / "host" / "dangling");
  const kube::Json volumes = {{{"name", "host"}, {"hostPath", {{"path", (folder_ / "host-link").string()}}}},
                              {{"name", "tmp"}, {"emptyDir", kube::Json::object()}}};
  const auto paths = Make(volumes.dump());
  ASSERT_THAT(paths, IsOk());
  const kube::Object pod(kube::Json{{"spec", {{"volumes", volumes}}}});
  const auto check = [&](const char* volume, const char* sub) {
    const kube::Json mount = {{"name", volume}, {"mountPath", "/m"}, {"subPath", sub}};
    return CheckVolumes(pod, {{"volumeMounts", {mount}}}, *paths);
  };
  for (const char* sub : {"", "inside", "in", "not/yet"}) EXPECT_THAT(check("host", sub), IsOk()) << sub;
  for (const char* sub : {"out", "out/set", "inside/../out", "dangling"}) {
    EXPECT_THAT(check("host", sub), StatusIs(absl::StatusCode::kPermissionDenied)) << sub;
  }
  EXPECT_THAT(check("tmp", ""), IsOk());
  // An init container has exchanged the volume.
  fs::remove(paths->at("tmp"));
  fs::create_directory_symlink(folder_ / "user", paths->at("tmp"));
  EXPECT_THAT(check("tmp", ""), StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("volume 'tmp'")));
}

}  // namespace
}  // namespace medley::localcluster
