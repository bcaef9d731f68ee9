// medley-operator --check against a cluster that has everything, and against each thing that may be
// missing. REST is asked in tests/integration/chart, of the real service.
#include "operator/app/check.h"

#include <gmock/gmock.h>

#include <sstream>

#include "common/base/status.h"
#include "common/base/testing/status_matchers.h"
#include "common/model/execution_plan.h"
#include "common/model/plan_result.h"
#include "common/model/planning.h"
#include "kube/errors.h"
#include "operator/api/resources.h"
#include "operator/planning/scheduler_client.h"
#include "tests/integration/operator/harness.h"

namespace medley::ops {
namespace {

using testing::HasSubstr;

class CheckTest : public OperatorHarness {
 protected:
  void SetUp() override {
    OperatorHarness::SetUp();
    scheduler_.SetPlanner([](const model::PlanRequest& request) {
      model::PlanResult result;
      result.plan.emplace();
      result.plan->stages = {{0, 0, request.resources.at(0).name, 2, 20000, 0.005, 0}};
      result.plan->throughput = 20000;
      result.plan->cost_usd = 1;
      return result;
    });
    scheduler_.Publish(1);
  }
  // Starts an operator in this process, which leads; Check then checks it and its Lease.
  void StartLeader() {
    OperatorOptions options = Options();
    options.election = OperatorOptions::Election{client_.get(),
                                                 {.lease = lease_,
                                                  .identity = "replica-1",
                                                  .lease_duration = base::seconds(15),
                                                  .renew_deadline = base::seconds(10),
                                                  .retry_period = base::milliseconds(200)}};
    app_ = std::make_unique<OperatorApp>(options, *operators_, clock_);
    ASSERT_THAT(app_->Start({}), base::IsOk());
    check_.lease = lease_;
    check_.operator_url = "http://127.0.0.1:" + std::to_string(app_->http_port());
  }
  absl::Status Ask(base::nanoseconds patience) {
    check_.patience = patience;
    return Check(Options(), check_, *operators_, clock_, said_, {});
  }
  // With as little patience as it takes to hear of the prices, which come a moment after the connection.
  absl::Status Ask() {
    for (const int milliseconds : {300, 3000}) {
      const absl::Status answer = Ask(base::milliseconds(milliseconds));
      if (base::Message(answer).find("has published no prices") == std::string::npos) return answer;
    }
    return Ask(base::seconds(30));
  }

  const kube::Key lease_{ns_, "medley-operator"};
  CheckOptions check_;
  std::ostringstream said_;
};

INSTANTIATE_TEST_SUITE_P(On, CheckTest, testing::ValuesIn(kube::ServersUnderTest()), kube::ServerName);

TEST_P(CheckTest, PrintsEachCheckThatPassed) {
  StartLeader();
  ASSERT_THAT(Ask(base::seconds(60)), base::IsOk());
  for (const char* line : {"API server: v1.", "trainingjobs: readable", "resourcepools: readable", "a plan of 2 units",
                           "prices: 1, revision ", ": ready", "leader: replica-1, term 0"})
    EXPECT_THAT(said_.str(), HasSubstr(line));
}

TEST_P(CheckTest, WithoutTheDefinitions) {
  ASSERT_THAT(client_->Delete(kube::resources::CustomResourceDefinitions(), {"", "trainingjobs.medley.dev"}),
              base::IsOk());
  ASSERT_TRUE(
      server_.Eventually([&] { return kube::IsNotFound(client_->List(TrainingJobs(), {.ns = ns_}).status()); }));
  EXPECT_THAT(Ask(), base::StatusIs(absl::StatusCode::kNotFound, HasSubstr("apply the CRDs in deploy/crds")));
  InstallCrds();  // for the cleanup, and for other tests on the same server
}

TEST_P(CheckTest, WithoutTheSchedulingService) {
  scheduler_.Kill();
  EXPECT_TRUE(IsSchedulerAway(Ask()));
}

TEST_P(CheckTest, RefusesAnInvalidPlan) {
  scheduler_.SetPlanner([](const model::PlanRequest& request) {
    model::PlanResult result;
    result.plan.emplace();
    result.plan->stages = {{0, 0, request.resources.at(0).name, 1, 10000, 0.01, 0}};
    result.plan->throughput = 10000;  // less than the request's minThroughput
    result.plan->cost_usd = 1;
    return result;
  });
  EXPECT_THAT(Ask(), base::StatusIs(absl::StatusCode::kInternal, HasSubstr("invalid plan: 1 units")));
}

TEST_P(CheckTest, WithoutAnOperator) {
  StartLeader();
  StopOperator();
  EXPECT_THAT(Ask(), base::StatusIs(absl::StatusCode::kUnavailable, HasSubstr("connection refused")));
}

// The Lease exists and was renewed a moment ago, but no operator renews it any more.
TEST_P(CheckTest, WithoutALeader) {
  StartLeader();
  ASSERT_THAT(Ask(base::seconds(60)), base::IsOk());
  StopOperator();
  check_.operator_url.clear();
  EXPECT_THAT(Ask(), base::StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("is not renewed")));
}

}  // namespace
}  // namespace medley::ops
