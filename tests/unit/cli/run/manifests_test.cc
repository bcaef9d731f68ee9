#include "cli/run/manifests.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "common/base/file.h"
#include "common/base/status.h"
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
  std::string here = kJob;
  here.replace(here.find("./data"), 6, "./");
  EXPECT_EQ(Load(std::string(kPool) + here)->job.String("/spec/data/volume/hostPath/path"), folder_.string());
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

// Issue 12: `objectives:` was dropped, and the spending cap with it.
TEST_F(ManifestsTest, UnknownFieldsAreRefusedWithTheFieldThatWasMeant) {
  const auto error = [&](const std::string& pool, const std::string& job) {
    return base::Message(Load(pool + job).status());
  };
  const std::string job = std::string(kJob).substr(0, std::string(kJob).find("spec:"));
  EXPECT_THAT(error(kPool, job + "spec: {objectives: {maxUsdPerHour: \"2\"}, training: {epochz: 2}}"),
              testing::AllOf(testing::EndsWith("job.yaml: TrainingJob j: spec.objectives: unknown field; did you mean "
                                               "`objective`?\n  spec.training.epochz: unknown field; did you mean "
                                               "`epochs`?")));
  EXPECT_THAT(error(kPool, job + "spec: {data: {schema: {label: {columm: 1}}}}"),
              HasSubstr("spec.data.schema.label.columm: unknown field; did you mean `column`?"));
  EXPECT_THAT(error(kPool, job + "sepc: {}"), HasSubstr("sepc: unknown field; did you mean `spec`?"));
  EXPECT_THAT(error(kPool, "apiVersion: medley.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: j, anotations: {}}"),
              HasSubstr("metadata.anotations: unknown field; did you mean `annotations`?"));
  const std::string pool = std::string(kPool).substr(0, std::string(kPool).find("spec:"));
  EXPECT_THAT(error(pool + "spec: {limits: 3}\n---\n", kJob),
              HasSubstr("ResourcePool a: spec.limits: unknown field; did you mean `limit`?"));
}

TEST_F(ManifestsTest, UnknownFieldsOfVolumesAndPodTemplatesAreRefused) {
  const std::string job = std::string(kJob).substr(0, std::string(kJob).find("spec:"));
  EXPECT_THAT(Load(kPool + job + "spec: {data: {volume: {hostpath: {path: /d}, mountPath: /data}}}"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("spec.data.volume.hostpath: unknown field; did you mean `hostPath`?")));
  EXPECT_THAT(Load(kPool + job + "spec: {template: {spec: {containers: [{name: worker, $patch: merge, imgae: x}]}}}"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("TrainingJob j: spec.template.spec.containers[0].imgae: unknown field; did you mean "
                                 "`image`?")));
  EXPECT_THAT(Load(kPool + job +
                   "spec: {template: {spec: {$setElementOrder/containers: [], containers: [{$patch: delete, name: "
                   "sidecar}]}}, checkpoint: {volume: {nfs: {server: s, path: /p}, mountPath: /c}}}"),
              base::IsOk());
}

TEST_F(ManifestsTest, AVersionThatDoesNotExistIsRefused) {
  EXPECT_THAT(Load(std::string(kPool) + "apiVersion: medley.dev/v1\nkind: TrainingJob\nmetadata: {name: j}"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("must be medley.dev/v1alpha1")));
}

TEST_F(ManifestsTest, TheExamplesHaveNoUnknownField) {
  const std::filesystem::path root(std::getenv("MEDLEY_SOURCE_DIR"));
  EXPECT_THAT(LoadManifests(root / "examples/adult.yaml"), base::IsOk());
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
