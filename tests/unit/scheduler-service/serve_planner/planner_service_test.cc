// The planners over PlannerService give what they give in the process of the caller, and bad requests are refused.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <limits>

#include "common/base/status.h"
#include "common/base/testing/patience.h"
#include "common/base/testing/status_matchers.h"
#include "common/model/convert.h"
#include "common/model/execution_plan.h"
#include "common/rpc/channel.h"
#include "common/rpc/context.h"
#include "common/rpc/server.h"
#include "common/rpc/status.h"
#include "medley/planner/v1/planner.grpc.pb.h"
#include "scheduler-service/cost/evaluate.h"
#include "scheduler-service/planner/builtin.h"
#include "scheduler-service/planner/schedule_names.h"
#include "scheduler-service/planning/candidate.h"
#include "scheduler-service/planning/stages.h"
#include "scheduler-service/remote_planner/remote_planner.h"
#include "scheduler-service/serve_planner/planner_service.h"
#include "tests/unit/scheduler-service/devices/random_cluster.h"
#include "tests/unit/scheduler-service/planner/random_request.h"

namespace medley::sched {
namespace {

namespace pb = planner::v1;
using testing::HasSubstr;

constexpr double kSeconds = 600;

model::PlanRequest Request(uint64_t seed) {
  model::PlanRequest request = RandomRequest(seed, {.most_layers = 6, .most_types = 3});
  return request;
}

// With less effort, of a planner that searches.
model::PlanRequest Quick(model::PlanRequest request, const Planner& planner) {
  for (const Option& option : planner.options()) {
    if (option.kind == OptionKind::kInteger) request.planner.options[std::string(option.name)] = 10.;
  }
  return request;
}

class PlannerServiceTest : public testing::Test {
 protected:
  ~PlannerServiceTest() override { server_->Stop(base::nanoseconds(0)); }

  pb::SolveRequest Asked(const model::PlanRequest& request, const std::string& planner, uint64_t seed) {
    pb::SolveRequest question;
    model::ToProto(request, *question.mutable_request());
    question.mutable_request()->mutable_planner()->set_name(planner);
    question.set_seed(seed);
    question.set_budget_seconds(kSeconds);
    return question;
  }
  absl::StatusOr<std::vector<pb::SolveResponse>> Ask(const pb::SolveRequest& question,
                                                     const std::string& token = "sesame-sesame-sesame") {
    grpc::ClientContext context;
    rpc::Prepare(context, {.token = token, .timeout = base::Patience(base::seconds(120))});
    const auto reader = stub_->Solve(&context, question);
    std::vector<pb::SolveResponse> responses;
    pb::SolveResponse response;
    while (reader->Read(&response)) responses.push_back(response);
    MEDLEY_RETURN_IF_ERROR(rpc::FromGrpc(reader->Finish()));
    return responses;
  }

  const base::SystemClock clock_;
  const Registry planners_ = BuiltinPlanners();
  Admission admission_{{}, nullptr, clock_};
  std::stop_source stop_;
  const std::unique_ptr<grpc::Service> service_ =
      MakePlannerService(planners_, admission_, clock_, stop_.get_token(),
                         {.default_planner = "greedy", .tokens = BearerTokens::Parse("sesame-sesame-sesame").value()});
  const std::unique_ptr<rpc::Server> server_ = rpc::Server::Start({}, {service_.get()}).value();
  const std::unique_ptr<pb::PlannerService::Stub> stub_ =
      pb::PlannerService::NewStub(rpc::MakeChannel(server_->address()));
};

TEST_F(PlannerServiceTest, GivesWhatThePlannerGivesInProcess) {
  int found = 0;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    for (const Planner* planner : planners_.Of(Supply::kUnits)) {
      const model::PlanRequest request = Quick(Request(seed), *planner);
      const auto problem = Problem::Compile(request);
      ASSERT_THAT(problem, base::IsOk());
      SCOPED_TRACE(fmt::format("{}, seed {}", planner->name(), seed));
      const auto want = planner->Solve(*problem, seed, Budget(clock_, clock_.Steady() + base::seconds(600), {}));
      const auto is = Ask(Asked(request, std::string(planner->name()), seed));
      ASSERT_EQ(base::ToString(is.status()), base::ToString(want.status()));
      if (!want.ok()) continue;
      ASSERT_FALSE(is->empty());
      const pb::SolveResponse& answer = is->back();
      EXPECT_TRUE(answer.done());
      std::vector<std::string> schedule;
      std::vector<int> units;
      for (const StageChoice& stage :
           want->plan ? StagesOf(*problem, *want->plan).value() : std::vector<StageChoice>{}) {
        units.push_back(stage.units);
        for (int l = stage.first; l <= stage.last; ++l) schedule.push_back(problem->type(stage.type).name);
      }
      EXPECT_THAT(answer.schedule(), testing::ElementsAreArray(schedule));
      EXPECT_THAT(answer.units(), testing::ElementsAreArray(units));
      found += want->plan ? 1 : 0;
    }
  }
  EXPECT_GT(found, 10);
}

TEST_F(PlannerServiceTest, PlansOfTheGoalStepTime) {
  const model::PlanRequest request = ClusterRequest({2, 1}, {1, 4});
  const auto answer = Ask(Asked(request, "hierarchy", 1));
  ASSERT_THAT(answer, base::IsOk());
  ASSERT_TRUE(answer->back().has_plan());
  const auto plan = model::FromProto(answer->back().plan());
  ASSERT_THAT(plan, base::IsOk());
  EXPECT_EQ(plan->devices.size(), 3u);
  EXPECT_THAT(answer->back().schedule(), testing::IsEmpty());
  // An unknown name means auto; a cluster without links is refused.
  EXPECT_TRUE(Ask(Asked(request, "mine", 1))->back().has_plan());
  model::PlanRequest bad = request;
  bad.cluster.links.clear();
  EXPECT_THAT(Ask(Asked(bad, "hierarchy", 1)),
              base::StatusIs(absl::StatusCode::kInvalidArgument, testing::HasSubstr("no link connects devices")));
}

TEST_F(PlannerServiceTest, AnUnknownNameMeansTheDefault) {
  const auto greedy = Ask(Asked(Request(2), "greedy", 1)), unknown = Ask(Asked(Request(2), "mine", 1));
  ASSERT_THAT(unknown, base::IsOk());
  EXPECT_EQ(unknown->back().SerializeAsString(), greedy->back().SerializeAsString());
}

// Costs of the candidates of an answer, in their order; only the last message says `done`.
std::vector<double> Costs(const Problem& problem, const std::vector<pb::SolveResponse>& answer) {
  std::vector<double> costs;
  for (size_t i = 0; i < answer.size(); ++i) {
    EXPECT_EQ(answer[i].done(), i + 1 == answer.size());
    const std::vector<std::string> schedule(answer[i].schedule().begin(), answer[i].schedule().end());
    const std::vector<int> cuts(answer[i].cuts().begin(), answer[i].cuts().end());
    auto stages = ReadSchedule(problem, schedule, cuts);
    EXPECT_THAT(stages, base::IsOk());
    if (!stages.ok()) continue;
    EXPECT_THAT(SetUnits({answer[i].units().data(), static_cast<size_t>(answer[i].units_size())}, *stages),
                base::IsOk());
    costs.push_back(ScoreOf(problem, *stages).cost);
  }
  return costs;
}

TEST_F(PlannerServiceTest, StreamsEachCheaperPlanOfASearch) {
  size_t most = 0;
  for (const std::string planner : {"genetic", "bayesian", "rl-lstm", "exact", "auto"}) {
    for (uint64_t seed = 1; seed <= 6; ++seed) {
      SCOPED_TRACE(fmt::format("{}, seed {}", planner, seed));
      const Problem problem = Problem::Compile(Request(seed)).value();
      const auto answer = Ask(Asked(Request(seed), planner, seed));
      ASSERT_THAT(answer, base::IsOk());
      if (answer->front().schedule().empty()) continue;  // infeasible
      const std::vector<double> costs = Costs(problem, *answer);
      most = std::max(most, costs.size());
      for (size_t i = 1; i < costs.size(); ++i) EXPECT_LE(costs[i], costs[i - 1] * (1 + kSameCost)) << i;
    }
  }
  EXPECT_GE(most, 4u);
}

TEST_F(PlannerServiceTest, RefusesBadRequests) {
  const pb::SolveRequest good = Asked(Request(1), "exact", 1);
  EXPECT_THAT(Ask(good, "sesame-sesame-sesamE"), base::StatusIs(absl::StatusCode::kUnauthenticated));
  EXPECT_THAT(Ask(good, ""), base::StatusIs(absl::StatusCode::kUnauthenticated));
  for (const double seconds :
       {0.0, -1.0, 3601.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    pb::SolveRequest bad = good;
    bad.set_budget_seconds(seconds);
    EXPECT_THAT(Ask(bad), base::StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("budgetSeconds: ")));
  }
  pb::SolveRequest unpriced = good;
  unpriced.mutable_request()->mutable_resources(0)->set_price_per_unit_hour(0);
  EXPECT_THAT(Ask(unpriced), base::StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Ask(pb::SolveRequest()), base::StatusIs(absl::StatusCode::kInvalidArgument));
  pb::SolveRequest many = good;
  for (int i = 0; i < 400'000; ++i) many.mutable_request()->add_resources();
  EXPECT_THAT(Ask(many), base::StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("the message has more than")));
}

TEST_F(PlannerServiceTest, RefusesRequestsWhenItStops) {
  admission_.Close();
  EXPECT_THAT(Ask(Asked(Request(1), "exact", 1)), base::StatusIs(absl::StatusCode::kUnavailable));
}

// Both ends together: the scheduling service's side gets the plan that it would have made itself.
TEST_F(PlannerServiceTest, ARemotePlannerAsksIt) {
  const Planner& own = *planners_.Find("auto", Supply::kUnits);
  const BearerTokens none;
  Admission admission({}, nullptr, clock_);
  const auto service =
      MakePlannerService(planners_, admission, clock_, {}, {.default_planner = "exact", .tokens = none});
  const auto server = rpc::Server::Start({}, {service.get()}).value();
  const auto remote =
      MakeRemotePlanner({.name = "far", .address = server->address(), .planner = "far", .timeout_seconds = kSeconds},
                        own)
          .value();
  int found = 0;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    const Problem problem = Problem::Compile(Request(seed)).value();
    const Budget budget(clock_, clock_.Steady() + base::seconds(600), {});
    const Candidate here = own.Solve(problem, 1, budget).value(), there = remote->Solve(problem, 1, budget).value();
    ASSERT_EQ(there.plan.has_value(), here.plan.has_value());
    if (!here.plan) continue;
    ++found;
    EXPECT_EQ(there.plan->stages, here.plan->stages);
    EXPECT_EQ(there.planner, "");
    EXPECT_THAT(there.notes, testing::IsEmpty());
  }
  EXPECT_GT(found, 1);
}

}  // namespace
}  // namespace medley::sched
