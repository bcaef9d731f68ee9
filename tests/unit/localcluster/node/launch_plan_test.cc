#include "localcluster/node/launch_plan.h"

#include <gtest/gtest.h>

#include "common/base/testing/status_matchers.h"

namespace medley::localcluster {
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
  const kube::Object pod(kube::Json::parse(R"({"metadata": {"name": "p", "namespace": "n"}, "spec": {}})"));
  const kube::Json container = kube::Json::parse(R"json({
    "name": "c", "image": "sh", "command": ["sh", "-c", "cat $(FILE)"],
    "args": ["--dir=/data", "$$(FILE)", "--end=/dev/termination-log"],
    "workingDir": "/data/work", "env": [{"name": "FILE", "value": "/data/x"}, {"name": "CUDA_VISIBLE_DEVICES", "value": "0,1"}],
    "volumeMounts": [{"name": "d", "mountPath": "/data"}]})json");
  const LaunchContext context{{}, {{"d", "/real"}}, "/pods/p", "id1", {{"PATH", "/evil"}, {"TZ", "UTC"}}, "/pods/p/end",
                              "1"};
  const auto spec = PlanLaunch(pod, container, "/bin/sh", context, NoData);
  ASSERT_THAT(spec, base::IsOk());
  EXPECT_EQ(spec->program, "/bin/sh");
  EXPECT_THAT(spec->arguments,
              ElementsAre("/bin/sh", "-c", "cat /real/x", "--dir=/real", "$(FILE)", "--end=/pods/p/end"));
  EXPECT_EQ(spec->working_folder, "/real/work");
  for (const char* variable :
       {"FILE=/real/x", "MEDLEY_MOUNT_D=/real", "HOSTNAME=p", "HOME=/pods/p", "TZ=UTC", "MEDLEY_CONTAINER_ID=id1",
        "CUDA_VISIBLE_DEVICES=1", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}) {
    EXPECT_THAT(spec->environment, Contains(variable));
  }
  EXPECT_EQ(spec->environment.size(), 8u);
}

// Issue 13: LD_PRELOAD in a pod's env ran any code as the owner of `medley run`.
TEST(LaunchPlanTest, VariablesWithPowerOverTheProgramAreRefused) {
  const kube::Object pod(kube::Json::parse(R"({"metadata": {"name": "p"}})"));
  const auto source = [](DataKind, const std::string&) -> absl::StatusOr<std::map<std::string, std::string>> {
    return std::map<std::string, std::string>{{"PRELOAD", "/evil.so"}, {"GCONV_PATH", "/evil"}};
  };
  const auto plan = [&](const char* container) {
    return PlanLaunch(pod, kube::Json::parse(container), "/opt/worker", {}, source).status();
  };
  for (const char* name :
       {"LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "LD_DEBUG_OUTPUT", "GLIBC_TUNABLES", "MALLOC_TRACE", "GCONV_PATH",
        "LOCPATH", "NLSPATH", "RES_OPTIONS", "HOSTALIASES", "PATH", "PYTHONPATH", "ASAN_OPTIONS", "OMP_TOOL_LIBRARIES",
        "CUDA_INJECTION64_PATH", "OPENSSL_CONF", "BASH_ENV"}) {
    const kube::Json container = {{"env", {{{"name", name}, {"value", "/evil.so"}}}}};
    EXPECT_THAT(plan(container.dump().c_str()),
                StatusIs(absl::StatusCode::kPermissionDenied, testing::HasSubstr(std::string("not set ") + name)));
  }
  EXPECT_THAT(plan(R"({"env": [{"name": "LD_PRELOAD=/evil.so", "value": ""}]})"),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(plan(R"({"env": [{"name": "", "value": ""}]})"), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(plan(R"({"envFrom": [{"configMapRef": {"name": "c"}}]})"),
              StatusIs(absl::StatusCode::kPermissionDenied, testing::HasSubstr("GCONV_PATH")));
  EXPECT_THAT(plan(R"({"envFrom": [{"prefix": "LD_", "secretRef": {"name": "c"}}]})"),
              StatusIs(absl::StatusCode::kPermissionDenied, testing::HasSubstr("LD_")));
  for (const char* name : {"OMP_NUM_THREADS", "MEDLEY_TOKEN", "MKL_NUM_THREADS", "DNNL_MAX_CPU_ISA", "GRPC_VERBOSITY",
                           "NCCL_DEBUG", "NODE_NAME", "TEAM", "ENV", "TMPDIR", "http_proxy", "a.b-c"}) {
    const kube::Json container = {{"env", {{{"name", name}, {"value", "x"}}}}};
    EXPECT_THAT(plan(container.dump().c_str()), base::IsOk()) << name;
  }
}

TEST(LaunchPlanTest, OtherProgramsAreRefused) {
  const kube::Object pod(kube::Json::parse(R"({"metadata": {"name": "p"}})"));
  const kube::Json container = {{"image", "worker"}, {"command", {"/bin/rm", "-rf"}}};
  EXPECT_THAT(PlanLaunch(pod, container, "/opt/worker", {}, NoData),
              StatusIs(absl::StatusCode::kPermissionDenied, testing::HasSubstr("/bin/rm")));
  // A program of the same name elsewhere is not started either.
  const kube::Json same = {{"image", "worker"}, {"command", {"/tmp/evil/worker"}}};
  const auto spec = PlanLaunch(pod, same, "/opt/worker", {}, NoData);
  ASSERT_THAT(spec, base::IsOk());
  EXPECT_EQ(spec->program, "/opt/worker");
  EXPECT_THAT(spec->arguments, ElementsAre("/opt/worker"));
}

}  // namespace
}  // namespace medley::localcluster
