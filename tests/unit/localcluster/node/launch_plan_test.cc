#include "localcluster/node/launch_plan.h"

#include <gtest/gtest.h>

#include "common/base/testing/status_matchers.h"

namespace medley::kube {
namespace {

using base::IsOkAndHolds;
using base::StatusIs;
using testing::Contains;
using testing::ElementsAre;

absl::StatusOr<std::map<std::string, std::string>> NoData(DataKind, const std::string& name) {
  return base::NotFound("'{}'", name);
}

TEST(LaunchPlanTest, ImagesAreFoundWithRegistryTagAndDigest) {
  const std::map<std::string, std::filesystem::path> images = {{"worker", "/bin/worker"}, {"r.io/x:2", "/bin/x2"}};
  for (const char* image : {"worker", "worker:1", "r.io/medley/worker:1.2", "r.io:5000/worker", "worker@sha256:ab"}) {
    EXPECT_THAT(FindProgram(images, image), IsOkAndHolds(std::filesystem::path("/bin/worker"))) << image;
  }
  EXPECT_THAT(FindProgram(images, "r.io/x:2"), IsOkAndHolds(std::filesystem::path("/bin/x2")));
  EXPECT_THAT(FindProgram(images, "r.io/x:3"), StatusIs(absl::StatusCode::kNotFound));
}

TEST(LaunchPlanTest, ArgumentsAndVariablesAreExpandedAndRewritten) {
  const Object pod(Json::parse(R"({"metadata": {"name": "p", "namespace": "n"}, "spec": {}})"));
  const Json container = Json::parse(R"json({
    "name": "c", "image": "sh", "command": ["sh", "-c", "cat $(FILE)"], "args": ["--dir=/data", "$$(FILE)"],
    "workingDir": "/data/work", "env": [{"name": "FILE", "value": "/data/x"}],
    "volumeMounts": [{"name": "d", "mountPath": "/data"}]})json");
  const LaunchContext context{{}, {{"d", "/real"}}, "/pods/p", "id1", {{"PATH", "/bin"}}};
  const auto spec = PlanLaunch(pod, container, "/bin/sh", context, NoData);
  ASSERT_THAT(spec, base::IsOk());
  EXPECT_EQ(spec->program, "/bin/sh");
  EXPECT_THAT(spec->arguments, ElementsAre("/bin/sh", "-c", "cat /real/x", "--dir=/real", "$(FILE)"));
  EXPECT_EQ(spec->working_folder, "/real/work");
  for (const char* variable :
       {"FILE=/real/x", "MEDLEY_MOUNT_D=/real", "HOSTNAME=p", "HOME=/pods/p", "PATH=/bin", "MEDLEY_CONTAINER_ID=id1"}) {
    EXPECT_THAT(spec->environment, Contains(variable));
  }
}

TEST(LaunchPlanTest, OtherProgramsAreRefused) {
  const Object pod(Json::parse(R"({"metadata": {"name": "p"}})"));
  const Json container = {{"image", "worker"}, {"command", {"/bin/rm", "-rf"}}};
  EXPECT_THAT(PlanLaunch(pod, container, "/opt/worker", {}, NoData),
              StatusIs(absl::StatusCode::kPermissionDenied, testing::HasSubstr("/bin/rm")));
}

}  // namespace
}  // namespace medley::kube
