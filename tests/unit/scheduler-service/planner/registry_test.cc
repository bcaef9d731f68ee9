// Which planners there are, and what is said of others.
#include <gmock/gmock.h>

#include <set>

#include "common/base/testing/fake_clock.h"
#include "common/base/testing/status_matchers.h"
#include "common/model/plan_result.h"
#include "medley/scheduler/v1/scheduler.pb.h"
#include "scheduler-service/planner/builtin.h"
#include "scheduler-service/planner/list_proto.h"
#include "scheduler-service/planner/plan.h"
#include "scheduler-service/planning/candidate.h"
#include "tests/unit/scheduler-service/devices/random_cluster.h"
#include "tests/unit/scheduler-service/planner/random_request.h"

namespace medley::sched {
namespace {

using base::IsOk;
using base::StatusIs;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
namespace pb = scheduler::v1;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

class RegistryTest : public testing::Test {
 protected:
  absl::Status Plan(model::PlanRequest request, const std::string& planner) {
    request.planner.name = planner;
    return MakePlan(request, {}, registry_, clock_, {}).status();
  }
  base::FakeClock clock_;
  const Registry registry_ = BuiltinPlanners();
};

TEST_F(RegistryTest, EachNameIsListedOnce) {
  pb::ListPlannersResponse list;
  ToProto(registry_, list);
  std::set<std::string> names;
  size_t goals = 0;
  for (const pb::PlannerInfo& planner : list.planners()) {
    EXPECT_TRUE(names.insert(planner.name()).second) << planner.name();
    EXPECT_GT(planner.goals_size(), 0) << planner.name();
    goals += static_cast<size_t>(planner.goals_size());
    for (const pb::PlannerGoal& goal : planner.goals()) EXPECT_FALSE(goal.description().empty()) << planner.name();
  }
  EXPECT_EQ(goals, registry_.planners().size());
  for (const char* both : {"auto", "exact"}) {
    EXPECT_NE(registry_.Find(both, Supply::kUnits), nullptr);
    EXPECT_NE(registry_.Find(both, Supply::kDevices), nullptr);
  }
}

TEST_F(RegistryTest, UnknownNamesAreErrorsThatHelp) {
  const model::PlanRequest cost = RandomRequest(1, {}), steps = ClusterRequest({2}, {1});
  EXPECT_THAT(
      Plan(cost, "exakt"),
      StatusIs(kInvalid, AllOf(HasSubstr("planner.name: 'exakt' is unknown; did you mean `exact`? For stages of "
                                         "some units there are: auto, exact, "),
                               Not(HasSubstr("hierarchy")))));
  EXPECT_THAT(Plan(steps, "hierarhcy"), StatusIs(kInvalid, HasSubstr("did you mean `hierarchy`? On the devices")));
  EXPECT_THAT(Plan(cost, "oracle"), StatusIs(kInvalid, HasSubstr("'oracle' is unknown. For stages of some units")));
  EXPECT_THAT(Plan(cost, "hierarchy"),
              StatusIs(kInvalid,
                       HasSubstr("'hierarchy' makes plans on the devices of a cluster only; with stages of some units "
                                 "there are: auto, ")));
  EXPECT_THAT(Plan(steps, "greedy"),
              StatusIs(kInvalid, HasSubstr("'greedy' makes plans with stages of some units only; on the")));
}

TEST_F(RegistryTest, EveryPlannerRefusesOptionsThatItDoesNotHave) {
  for (const auto& planner : registry_.planners()) {
    const bool devices = planner->takes().supply == Supply::kDevices;
    model::PlanRequest request = devices ? ClusterRequest({2}, {1}) : RandomRequest(1, {});
    request.planner.options = {{"nonsense", 1.}};
    EXPECT_THAT(
        Plan(request, std::string(planner->name())),
        StatusIs(kInvalid, HasSubstr(fmt::format("planner.options.nonsense: planner {} has no ", planner->name()))));
  }
}

// What a planner says that it takes is what it does. The searches are stopped before they begin.
TEST_F(RegistryTest, LimitsAreTrue) {
  std::stop_source stop;
  stop.request_stop();
  const Budget stopped(clock_, base::SteadyTime::max(), stop.get_token());
  for (const Planner* planner : registry_.Of(Supply::kDevices)) {
    SCOPED_TRACE(planner->name());
    const Takes takes = planner->takes();
    const int devices = takes.most_devices > 0 ? takes.most_devices + 1 : 70;
    const auto many = planner->Solve(ProblemOf(ClusterRequest({devices}, {1})), 1, stopped).status();
    EXPECT_EQ(absl::IsInvalidArgument(many) && base::Message(many).find("at most") != std::string::npos,
              takes.most_devices > 0)
        << many;
    model::PlanRequest late = ClusterRequest({2}, {1}, 4);
    late.planner.schedule = model::ScheduleKind::kAsync1F1B;
    EXPECT_EQ(absl::IsInvalidArgument(planner->Solve(ProblemOf(late), 1, stopped).status()), !takes.asynchronous);
  }
}

// A choice or number at each end of its range is taken.
TEST_F(RegistryTest, OptionsAtTheirLeastAreTaken) {
  int options = 0;
  for (const Planner* planner : registry_.Of(Supply::kUnits)) {
    for (const Option& option : planner->options()) {
      model::PlanRequest request = RandomRequest(1, {.most_layers = 3, .most_types = 2});
      request.planner.options[std::string(option.name)] = option.kind == OptionKind::kChoice
                                                              ? model::OptionValue(std::string(option.choices.front()))
                                                              : model::OptionValue(option.least);
      EXPECT_THAT(Plan(request, std::string(planner->name())), IsOk()) << planner->name() << " " << option.name;
      ++options;
    }
  }
  EXPECT_GE(options, 10);
}

}  // namespace
}  // namespace medley::sched
