// Manifests of tests/data/manifests/bad that an API server takes and the operator answers with a
// condition: every row of docs/use/api.md's table of bad input below the first.
#include <gmock/gmock.h>

#include <map>

#include "common/base/status.h"
#include "common/base/testing/status_matchers.h"
#include "common/model/plan_result.h"
#include "common/model/planning.h"
#include "operator/api/resources.h"
#include "tests/integration/operator/harness.h"
#include "tests/unit/operator/api/manifest_cases.h"

namespace medley::ops {
namespace {

using kube::Json;
using testing::HasSubstr;

// One case in a cluster of its own.
class World : public OperatorHarness {
 public:
  void TestBody() override {}
  void Check(const ManifestCase& bad) {
    SetUp();
    MakeWorld(bad.world);
    StartOperator();
    if (!HasFatalFailure()) Expect(bad);
    TearDown();
  }

 private:
  // What is wrong around the job, before it is made.
  void MakeWorld(const std::string& world) {
    const std::map<std::string, std::function<void()>> worlds = {
        {"", [] {}},
        {"bad row", [] {}},  // comes when the job runs
        {"no price", [this] { scheduler_.Publish(0); }},
        {"scheduler unavailable", [this] { scheduler_.Kill(); }},
        {"pool of another namespace",
         [this] {
           Json pool = LoadYaml("tests/data/manifests/good/pool-minimal.yaml");
           pool["metadata"]["name"] = "theirs";
           pool["spec"]["namespaces"] = {"theirs"};
           Apply(ResourcePools(), pool);
         }},
        {"unknown planner",
         [this] {
           scheduler_.SetPlanner([](const model::PlanRequest& request) -> absl::StatusOr<model::PlanResult> {
             return base::NotFound("planner '{}' is not in the registry", request.planner.name);
           });
         }},
        {"infeasible",
         [this] {
           scheduler_.SetPlanner([](const model::PlanRequest&) -> absl::StatusOr<model::PlanResult> {
             model::PlanResult result;
             result.reasons = {{"limit", "gpu", 61, 2, "61 units of gpu are needed, 2 are allowed"}};
             return result;
           });
         }},
        {"profiler fails",
         [this] {
           profiler_exit_ = 2;
           profiler_log_ = "starting\nfile:///data/train.csv: no such file\n";
         }},
    };
    const auto found = worlds.find(world);
    ASSERT_NE(found, worlds.end()) << "no such world: " << world;
    found->second();
  }

  void Expect(const ManifestCase& bad) {
    Json job = bad.manifest.json();
    job["metadata"]["namespace"] = ns_;
    Apply(TrainingJobs(), job);
    if (bad.world == "bad row") {
      ASSERT_TRUE(WaitForCondition("Running", "True"));
      coordinator_.Fail("file:///data/train.csv:17: 14 columns, want 15", false);
    }
    const std::string type = bad.condition["type"];
    ASSERT_TRUE(WaitForCondition(type, bad.condition["status"], bad.condition["reason"]));
    EXPECT_THAT(Status().conditions.Find(type)->message, HasSubstr(bad.condition["message"].get<std::string>()));
  }
};

class BadManifestsTest : public testing::TestWithParam<kube::ServerKind> {};
INSTANTIATE_TEST_SUITE_P(On, BadManifestsTest, testing::ValuesIn(kube::ServersUnderTest()), kube::ServerName);

TEST_P(BadManifestsTest, EachGetsItsCondition) {
  int tried = 0;
  for (const ManifestCase& bad : BadManifests()) {
    if (bad.condition.is_null()) continue;
    SCOPED_TRACE(bad.name);
    World().Check(bad);
    ++tried;
  }
  EXPECT_GE(tried, 11);
}

}  // namespace
}  // namespace medley::ops
