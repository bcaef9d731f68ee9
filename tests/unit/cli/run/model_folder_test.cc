#include "cli/run/model_folder.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "common/base/file.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"

namespace medley::cli {
namespace {

using base::IsOk;
using base::IsOkAndHolds;
using base::StatusIs;

kube::Object Job(const std::string& checkpoint) {
  kube::Json json = kube::Json::parse(R"({"apiVersion": "medley.dev/v1alpha1", "kind": "TrainingJob",
      "metadata": {"name": "click", "namespace": "team", "uid": "u-1"}, "spec": {}})");
  if (!checkpoint.empty()) json["spec"]["checkpoint"] = kube::Json::parse(checkpoint);
  return kube::Object(std::move(json));
}

TEST(ModelFolderTest, IsOnTheCheckpointVolume) {
  const std::filesystem::path claims = "/run/node/claims";
  EXPECT_THAT(
      ExportFolderOf(Job(R"({"volume": {"persistentVolumeClaim": {"claimName": "c"}, "mountPath": "/m"}})"), claims),
      IsOkAndHolds(std::filesystem::path("/run/node/claims/team/c/team-click-u-1/export")));
  EXPECT_THAT(ExportFolderOf(Job(R"({"volume": {"hostPath": {"path": "/data/ck"}, "mountPath": "/m"}})"), claims),
              IsOkAndHolds(std::filesystem::path("/data/ck/team-click-u-1/export")));
  EXPECT_THAT(ExportFolderOf(Job(R"({"volume": {"nfs": {"server": "x"}, "mountPath": "/m"}})"), claims),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(ExportFolderOf(Job(""), claims), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST(ModelFolderTest, OrInAnObjectStore) {
  kube::Object job = Job(R"({"uri": "s3://bucket/jobs/"})");
  EXPECT_FALSE(EnsureCheckpointVolume(job));
  EXPECT_THAT(ExportFolderOf(job, "/claims"),
              IsOkAndHolds(std::filesystem::path("s3://bucket/jobs/team-click-u-1/export")));
}

TEST(ModelFolderTest, OnlyAJobWithoutAVolumeGetsOne) {
  for (const char* checkpoint : {"", R"({"interval": "5s"})"}) {
    kube::Object job = Job(checkpoint);
    EXPECT_TRUE(EnsureCheckpointVolume(job));
    EXPECT_THAT(ExportFolderOf(job, "/claims"), IsOk());
    EXPECT_FALSE(EnsureCheckpointVolume(job));
  }
}

TEST(ModelFolderTest, ReplacesAnEarlierModelAndNothingElse) {
  const std::filesystem::path root = *base::MakeTempDir("model-folder-test");
  const std::filesystem::path from = root / "from";
  const std::filesystem::path to = root / "deep" / "to";
  std::filesystem::create_directories(from / "numpy");
  EXPECT_THAT(CheckModelFolder(to), IsOk());
  EXPECT_THAT(CopyModel(from, to), StatusIs(absl::StatusCode::kNotFound));
  std::ofstream(from / "model.json") << "first";
  std::ofstream(from / "numpy" / "a.npy") << "a";
  EXPECT_THAT(CopyModel(from, to), IsOk());
  EXPECT_THAT(base::ReadFile(to / "numpy" / "a.npy"), IsOkAndHolds("a"));
  std::filesystem::remove(from / "numpy" / "a.npy");
  std::ofstream(from / "model.json") << "second";
  EXPECT_THAT(CheckModelFolder(to), IsOk());
  EXPECT_THAT(CopyModel(from, to), IsOk());
  EXPECT_THAT(base::ReadFile(to / "model.json"), IsOkAndHolds("second"));
  EXPECT_FALSE(std::filesystem::exists(to / "numpy" / "a.npy"));
  EXPECT_THAT(CheckModelFolder(root), StatusIs(absl::StatusCode::kAlreadyExists));
  std::filesystem::create_directories(root / "empty");
  EXPECT_THAT(CheckModelFolder(root / "empty"), IsOk());
  base::RemoveTempDir(root);
}

// A pod has put a link to a file of the user into the model, which the user then publishes.
TEST(ModelFolderTest, AModelWithALinkIsNotCopied) {
  const auto root = *base::MakeTempDir("model-folder");
  const std::filesystem::path from = root / "from";
  std::filesystem::create_directories(from / "numpy");
  std::ofstream(root / "secret") << "the user's";
  std::ofstream(from / "model.json") << "first";
  std::filesystem::create_symlink(root / "secret", from / "numpy" / "a.npy");
  EXPECT_THAT(CopyModel(from, root / "to"),
              StatusIs(absl::StatusCode::kPermissionDenied, testing::HasSubstr("numpy/a.npy")));
  std::filesystem::remove(from / "numpy" / "a.npy");
  std::filesystem::create_directory_symlink(root, from / "deep");
  EXPECT_THAT(CopyModel(from, root / "to"), StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_FALSE(std::filesystem::exists(root / "to"));
  base::RemoveTempDir(root);
}

}  // namespace
}  // namespace medley::cli
