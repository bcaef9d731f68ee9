#include "operator/builders/worker_share.h"

#include <gmock/gmock.h>

#include "common/base/testing/status_matchers.h"
#include "operator/api/resource_pool.h"
#include "tests/unit/operator/builders/sample_job.h"

namespace medley::ops {
namespace {

using kube::Json;
using testing::HasSubstr;

const UnitAmounts kUnit = {{"cpu", "4"}, {"memory", "16Gi"}, {"nvidia.com/gpu", "1"}};

Json PodOf(const char* containers, const char* init_containers = "[]") {
  return {{"containers", Json::parse(containers)}, {"initContainers", Json::parse(init_containers)}};
}

const Json kAlone = PodOf(R"([{"name": "worker", "resources": {"requests": {"cpu": "9"}}}])");

struct ShareCase {
  const char* name;
  Json pod;
  Json pool = kAlone;
  UnitAmounts share = kUnit;
  const char* refusal = "";
};

class WorkerShareTest : public testing::TestWithParam<ShareCase> {};

TEST_P(WorkerShareTest, TheWorkerGetsTheRest) {
  const ShareCase& given = GetParam();
  EXPECT_EQ(WorkerShare(kUnit, given.pod, given.pool), given.share);
  const absl::Status checked = CheckWorkerShare(kUnit, given.pod, given.pool);
  EXPECT_EQ(checked.ok(), *given.refusal == '\0') << checked;
  EXPECT_THAT(std::string(checked.message()), HasSubstr(given.refusal));
}

INSTANTIATE_TEST_SUITE_P(
    All, WorkerShareTest,
    testing::Values(
        ShareCase{"Alone", kAlone}, ShareCase{"NoContainers", Json::object()},
        ShareCase{"ASidecarThatAsksForNothing", PodOf(R"([{"name": "worker"}, {"name": "s"}])")},
        ShareCase{
            .name = "ASidecar",
            .pod = PodOf(
                R"([{"name": "worker"}, {"name": "s", "resources": {"requests": {"cpu": "500m", "disk": "1"}}}])"),
            .share = {{"cpu", "3500m"}, {"memory", "16Gi"}, {"nvidia.com/gpu", "1"}}},
        ShareCase{.name = "LimitsCountWithoutRequests",
                  .pod = PodOf(R"([{"name": "s", "resources": {"limits": {"cpu": 1, "memory": "1Gi"},
                                                              "requests": {"cpu": "250m"}}}])"),
                  .share = {{"cpu", "3750m"}, {"memory", "16106127360"}, {"nvidia.com/gpu", "1"}}},
        ShareCase{.name = "InitContainersThatRestart",
                  .pod = PodOf(R"([{"name": "worker"}])", R"([
                      {"name": "a", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}},
                      {"name": "b", "resources": {"requests": {"cpu": "3"}}}])"),
                  .share = {{"cpu", "3000m"}, {"memory", "16Gi"}, {"nvidia.com/gpu", "1"}}},
        ShareCase{.name = "AnInitContainerIsTooLarge",
                  .pod = PodOf(R"([{"name": "worker"}])", R"([
                      {"name": "a", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}},
                      {"name": "b", "resources": {"requests": {"cpu": "3500m"}}}])"),
                  .share = {{"cpu", "3000m"}, {"memory", "16Gi"}, {"nvidia.com/gpu", "1"}},
                  .refusal = "init containers request 4500m cpu of a unit that has 4"},
        ShareCase{.name = "NothingIsLeft",
                  .pod = PodOf(R"([{"name": "s", "resources": {"requests": {"cpu": "4"}}}])"),
                  .refusal = "containers beside the worker request 4000m cpu of a unit that has 4"},
        ShareCase{.name = "TheOnlyDevice",
                  .pod = PodOf(R"([{"name": "s", "resources": {"limits": {"nvidia.com/gpu": 1}}}])"),
                  .refusal = "request 1 nvidia.com/gpu of a unit that has 1"},
        ShareCase{.name = "AMachineForThePriceOfAUnit",
                  .pod = PodOf(R"([{"name": "s", "resources": {"requests": {"memory": "1Ti"}}}])"),
                  .refusal = "of a unit that has 16Gi"},
        ShareCase{.name = "ThePoolsOwnSidecarIsNotPartOfTheUnit",
                  .pod = PodOf(R"([{"name": "worker"}, {"name": "s", "resources": {"requests": {"cpu": "8"}}}])"),
                  .pool = PodOf(R"([{"name": "worker"}, {"name": "s", "resources": {"requests": {"cpu": "8"}}}])")},
        ShareCase{.name = "AJobThatEnlargesItPays",
                  .pod = PodOf(R"([{"name": "worker"}, {"name": "s", "resources": {"requests": {"cpu": "10"}}}])"),
                  .pool = PodOf(R"([{"name": "worker"}, {"name": "s", "resources": {"requests": {"cpu": "8"}}}])"),
                  .share = {{"cpu", "2000m"}, {"memory", "16Gi"}, {"nvidia.com/gpu", "1"}}},
        ShareCase{.name = "NegativeAmountsGiveNothing",
                  .pod = PodOf(R"([{"name": "s", "resources": {"requests": {"cpu": "-4"}}}])")}),
    [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace medley::ops
