#include "cli/run/manifests.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "cli/run/local_cluster.h"
#include "common/base/file.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "operator/api/crds.h"

namespace medley::cli {
namespace {

using base::StatusIs;
using testing::HasSubstr;

class ManifestsTest : public testing::Test {
 protected:
  void SetUp() override { folder_ = *base::MakeTempDir("medley-manifests-test"); }
  void TearDown() override { base::RemoveTempDir(folder_); }
  absl::StatusOr<Manifests> Load(std::string_view text) {
    EXPECT_THAT(base::WriteFileAtomic(folder_ / "job.yaml", text), base::IsOk());
    return LoadManifests(folder_ / "job.yaml");
  }
  std::filesystem::path folder_;
};

constexpr char kPool[] =
    "apiVersion: medley.dev/v1alpha1\nkind: ResourcePool\nmetadata: {name: a}\n"
    "spec: {nodeSelector: {kind: x}, limit: 3, unit: {resources: {cpu: 500m, memory: 1Gi}}}\n---\n";
constexpr char kJob[] =
    "apiVersion: medley.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: j}\n"
    "spec: {data: {volume: {hostPath: {path: ./data}, mountPath: /data}}}\n";

TEST_F(ManifestsTest, ResolvesRelativeHostPathsAgainstTheFile) {
  const auto manifests = Load(std::string(kPool) + kJob);
  ASSERT_THAT(manifests, base::IsOk());
  EXPECT_EQ(manifests->job.String("/spec/data/volume/hostPath/path"), (folder_ / "data").string());
  EXPECT_EQ(manifests->job.key().ns, "default");
  EXPECT_TRUE(manifests->scenario.empty());
}

TEST_F(ManifestsTest, SaysWhatIsMissing) {
  EXPECT_THAT(LoadManifests("/nonexistent.yaml"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(Load(kPool), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("0 TrainingJobs")));
  EXPECT_THAT(Load(std::string(kPool) + kJob + "---\n" + kJob),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("2 TrainingJobs")));
  EXPECT_THAT(Load(kJob), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no ResourcePool")));
  EXPECT_THAT(Load("a: [1"), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("job.yaml")));
  EXPECT_THAT(Load("kind: TrainingJob"), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("metadata.name")));
}

TEST_F(ManifestsTest, NodesHaveRoomForTheirPoolsAndMore) {
  const auto manifests = Load(std::string(kPool) + kJob);
  const auto nodes = NodesFor(manifests->pools);
  ASSERT_EQ(nodes.size(), 1u);
  EXPECT_EQ(nodes[0].labels.at("kind"), "x");
  EXPECT_EQ(nodes[0].allocatable.at("cpu"),
            "9.5");  // 3 x 0.5, and 8 for coordinators and profilers
}

TEST(BundledCrdsTest, AreTheFilesOfDeploy) {
  const std::filesystem::path root(std::getenv("MEDLEY_SOURCE_DIR"));
  ASSERT_EQ(ops::BundledCrds().size(), 2u);
  for (const auto& [name, text] : ops::BundledCrds()) {
    EXPECT_EQ(*base::ReadFile(root / "deploy/crds" / name), text) << name;
  }
}

}  // namespace
}  // namespace medley::cli
