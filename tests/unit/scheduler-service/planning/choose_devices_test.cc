// Bounds and objectives of plans on devices: compared with every subset of the devices, and single cases.
#include "scheduler-service/planning/choose_devices.h"
#include "common/model/plan_result.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "common/base/testing/status_matchers.h"
#include "scheduler-service/devices/device_choices.h"
#include "scheduler-service/devices/device_simulator.h"
#include "scheduler-service/hierarchy/hierarchy_planner.h"
#include "scheduler-service/pipeline/pipeline_planners.h"
#include "scheduler-service/planning/answer_on_devices.h"
#include "scheduler-service/planning/candidate.h"
#include "scheduler-service/planning/registry.h"
#include "tests/unit/scheduler-service/devices/random_cluster.h"

namespace medley::sched {
namespace {

using base::IsOk;
using testing::AnyOf;
using testing::HasSubstr;

const base::SystemClock& RealClock() {
  static const base::SystemClock clock;
  return clock;
}

model::PlanResult Answer(model::PlanRequest request, const std::string& planner = "hierarchy", double seconds = 60) {
  Registry planners;
  planners.Add(MakeHierarchyPlanner());
  for (auto& one : MakePipelinePlanners()) planners.Add(std::move(one));
  request.planner.name = planner;
  request.planner.time_budget_seconds = seconds;
  auto result = AnswerOnDevices(request, *planners.Find(planner, Supply::kDevices), RealClock(), {});
  EXPECT_THAT(result, IsOk());
  return result.ok() ? *std::move(result) : model::PlanResult{};
}

// `counts` devices of pools p0, p1, ... at these prices, with 512 samples a step and `steps` steps to the end.
model::PlanRequest Priced(const std::vector<int>& counts, const std::vector<double>& slower,
                          const std::vector<double>& prices, double steps = 3600) {
  model::PlanRequest request = ClusterRequest(counts, slower);
  for (size_t p = 0; p < prices.size(); ++p) request.resources[p].price_per_unit_hour = prices[p];
  request.training.samples_per_epoch = 512 * steps;
  return request;
}

std::map<std::string, int> UnitsOf(const model::PlanResult& result) {
  std::map<std::string, int> units;
  for (const model::Device& device : result.execution_plan->devices) ++units[device.pool];
  return units;
}

// What a plan costs and reaches, computed apart from the code under test.
struct Checked {
  double seconds = 0, usd_per_hour = 0, usd = 0, to_end = 0, throughput = 0;
  int units = 0, least = 0;
};

Checked Check(const model::PlanRequest& request, const model::ExecutionPlan& plan, double seconds) {
  Checked out;
  out.seconds = seconds;
  for (const model::Device& device : plan.devices) {
    for (const model::Resource& resource : request.resources) {
      if (resource.name == device.pool) out.usd_per_hour += resource.price_per_unit_hour;
    }
  }
  out.throughput = request.training.profile_batch_size / seconds;
  out.to_end = request.training.samples_per_epoch / out.throughput;
  out.usd = out.to_end * out.usd_per_hour / 3600;
  out.units = static_cast<int>(plan.devices.size());
  out.least = out.units;
  for (const auto& placement : plan.placements) {
    out.least = std::min(out.least, static_cast<int>(placement.replicas.size()));
  }
  return out;
}

bool Within(const model::Constraints& c, const Checked& plan) {
  const auto most = [](double value, double limit) { return limit <= 0 || value <= limit * (1 + 1e-8); };
  return plan.throughput >= c.min_throughput * (1 - 1e-8) && most(plan.to_end, c.deadline_seconds) &&
         most(plan.usd_per_hour, c.max_cost_per_hour) && most(plan.usd, c.budget_usd) &&
         most(plan.units, c.max_units) && plan.least >= c.min_units;
}

double Value(const Checked& plan, model::Objective objective) {
  return objective == model::Objective::kCost          ? plan.usd
         : objective == model::Objective::kCostPerHour ? plan.usd_per_hour
                                                       : plan.seconds;
}

// The plan of the planner on every subset of the devices.
std::vector<Checked> EverySubset(const model::PlanRequest& request) {
  std::vector<Checked> out;
  const auto planner = MakeHierarchyPlanner();
  const auto n = request.cluster.devices.size();
  for (unsigned set = 1; set < 1U << n; ++set) {
    std::vector<model::Device> devices;
    for (size_t d = 0; d < n; ++d) {
      if ((set >> d & 1) != 0) devices.push_back(request.cluster.devices[d]);
    }
    model::PlanRequest part = request;
    part.constraints = {};
    part.cluster = model::ClusterOf(request.cluster, devices);
    const auto solution = planner->Solve(ProblemOf(part), 1, Budget(RealClock(), base::SteadyTime::max(), {}));
    EXPECT_THAT(solution, IsOk());
    if (solution->plan) out.push_back(Check(request, *solution->plan, solution->figures.seconds));
  }
  return out;
}

// Bounds near the figures of a plan, so that they bind.
model::Constraints RandomBounds(base::Rng& rng, const Checked& near) {
  model::Constraints c;
  const auto about = [&](double value) { return value * (0.7 + 0.6 * rng.Uniform()); };
  if (rng.Below(2) == 0) c.max_cost_per_hour = about(near.usd_per_hour);
  if (rng.Below(4) == 0) c.budget_usd = about(near.usd);
  if (rng.Below(4) == 0) c.deadline_seconds = about(near.to_end);
  if (rng.Below(4) == 0) c.min_throughput = about(near.throughput);
  if (rng.Below(3) == 0) c.max_units = 1 + static_cast<int>(rng.Below(static_cast<uint64_t>(near.units + 1)));
  if (rng.Below(5) == 0) c.min_units = 2;
  return c;
}

TEST(ChooseDevicesTest, IsNoWorseThanEverySubsetOfTheDevices) {
  using enum model::Objective;
  int chosen = 0, infeasible = 0, equal = 0, proven = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    base::Rng rng(seed);
    model::PlanRequest request = RandomClusterRequest(rng, 2 + static_cast<int>(rng.Below(4)));
    request.training.samples_per_epoch = LogUniform(rng, 1e5, 1e7);
    for (model::Resource& resource : request.resources) resource.price_per_unit_hour = LogUniform(rng, 0.1, 10);
    const std::vector<Checked> all = EverySubset(request);
    ASSERT_FALSE(all.empty());
    for (const model::Objective objective : {kStepTime, kTime, kCost, kCostPerHour}) {
      request.objective = objective;
      request.constraints = RandomBounds(rng, all[rng.Below(all.size())]);
      double best = kForever, fastest = kForever;
      for (const Checked& plan : all) {
        if (!Within(request.constraints, plan)) continue;
        best = std::min(best, Value(plan, objective));
        fastest = std::min(fastest, plan.seconds);
      }
      const model::PlanResult result = Answer(request);
      if (!result.step_time) {
        ++infeasible;
        EXPECT_EQ(best, kForever) << "a plan of " << best << " exists";
        EXPECT_FALSE(result.reasons.empty());
        continue;
      }
      const Checked plan = Check(request, *result.execution_plan, result.step_time->seconds);
      EXPECT_TRUE(Within(request.constraints, plan));
      if (result.step_time->choices == 0) {  // the bounds allow all devices, and the planner chose among them
        EXPECT_NEAR(plan.seconds, all.back().seconds, 1e-9 * plan.seconds);
        continue;
      }
      EXPECT_LE(Value(plan, objective), best * (1 + 1e-9));
      ++chosen;
      equal += Value(plan, objective) >= best * (1 - 1e-9) ? 1 : 0;
      EXPECT_NEAR(result.step_time->usd_per_hour, plan.usd_per_hour, 1e-9 * plan.usd_per_hour);
      EXPECT_NEAR(result.step_time->usd, plan.usd, 1e-6 * plan.usd);
      EXPECT_LE(result.step_time->lower_bound_seconds, std::min(plan.seconds, fastest) * (1 + 1e-9));
      proven += result.step_time->lower_bound_seconds > 0 ? 1 : 0;
    }
  }
  std::printf(
      "%d chosen, of them %d as good as the best subset and the others better, %d infeasible, %d proven bounds\n",
      chosen, equal, infeasible, proven);
  EXPECT_GE(chosen, 70);
  EXPECT_GE(infeasible, 10);
  EXPECT_GE(equal, chosen * 3 / 4);
  EXPECT_GE(proven, 20);
}

// The bound of computing power holds for whatever any planner finds on the devices of a choice.
TEST(ChooseDevicesTest, NoPlanOfAChoiceIsFasterThanItsLeastSeconds) {
  int checked = 0;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    base::Rng rng(seed);
    model::PlanRequest request = RandomClusterRequest(rng, 2 + static_cast<int>(rng.Below(2)));
    for (model::Layer& layer : request.model.layers) {  // each pool is good at other layers
      for (model::LayerProfile& times : layer.profiles) times.compute_seconds *= LogUniform(rng, 0.3, 3);
    }
    const DeviceProblem problem = ProblemOf(request);
    const DeviceKinds kinds = KindsOf(problem);
    for (const DeviceChoice& choice : ChoicesOf(problem, kinds, {}, model::Objective::kStepTime).choices) {
      std::vector<model::Device> devices;
      for (const int d : DevicesOf(kinds, choice)) devices.push_back(problem.device(d));
      model::PlanRequest part = request;
      part.cluster = model::ClusterOf(request.cluster, devices);
      for (const char* planner : {"hierarchy", "local"}) {
        const model::PlanResult result = Answer(part, planner);
        ASSERT_TRUE(result.step_time);
        EXPECT_LE(choice.least_seconds, result.step_time->seconds * (1 + 1e-9)) << planner;
        ++checked;
      }
    }
  }
  EXPECT_GE(checked, 20);
}

TEST(ChooseDevicesTest, WithoutBoundsNothingIsChosen) {
  const model::PlanResult result = Answer(Priced({2, 2}, {1, 4}, {3, 1}));
  ASSERT_TRUE(result.step_time);
  EXPECT_EQ(result.step_time->choices, 0);
  EXPECT_EQ(result.step_time->usd_per_hour, 8);
  EXPECT_NEAR(result.step_time->usd, 8 * result.step_time->seconds, 1e-9);  // 3,600 steps
  EXPECT_NEAR(result.step_time->usd_per_step, 8 * result.step_time->seconds / 3600, 1e-12);
  // The same where the bounds do not bind.
  model::PlanRequest loose = Priced({2, 2}, {1, 4}, {3, 1});
  loose.constraints = {.min_throughput = 1,
                       .max_cost_per_hour = 8,
                       .deadline_seconds = 1e6,
                       .budget_usd = 1e6,
                       .min_units = 1,
                       .max_units = 4};
  const model::PlanResult same = Answer(loose);
  EXPECT_EQ(same.execution_plan, result.execution_plan);
  EXPECT_EQ(same.step_time, result.step_time);
}

TEST(ChooseDevicesTest, TheFastestPlanForSomeUsdPerHour) {
  model::PlanRequest request = Priced({2, 4}, {1, 4}, {3, 1});
  request.constraints.max_cost_per_hour = 5;
  const model::PlanResult result = Answer(request);
  ASSERT_TRUE(result.step_time);
  // One fast device and two slow ones do 1.5 steps a second; five slow ones would be 1.25, and there are four.
  EXPECT_EQ(UnitsOf(result), (std::map<std::string, int>{{"p0", 1}, {"p1", 2}}));
  EXPECT_EQ(result.step_time->usd_per_hour, 5);
  EXPECT_GT(result.step_time->choices, 0);
  EXPECT_GT(result.step_time->lower_bound_seconds, 0);
  EXPECT_THAT(result.step_time->explanation, HasSubstr("the plan uses 1 of 2 p0, 2 of 4 p1, for 5 USD/h"));
  // What it is compared with must keep the bound too.
  EXPECT_THAT(result.step_time->alternatives.back().failure,
              HasSubstr("its units cost 10 USD/h, and maxCostPerHour is 5"));
  EXPECT_EQ(result.step_time->alternatives[result.step_time->alternatives.size() - 2].usd_per_hour, 3);
}

// A plan with more devices is not always faster: those of p1 are behind a link that is slower than what they save.
TEST(ChooseDevicesTest, MoreDevicesAreNotAlwaysFaster) {
  model::PlanRequest request = Priced({3, 3}, {1, 1.1}, {2, 1});
  request.cluster.links = {{"*", "*", 0.05, 1e6}, {"p0", "p0", 1e-4, 1e9}};
  request.constraints.max_cost_per_hour = 6.5;
  EXPECT_EQ(UnitsOf(Answer(request)), (std::map<std::string, int>{{"p0", 3}}));
}

TEST(ChooseDevicesTest, EveryBoundIsKeptOrExplained) {
  const auto with = [](const model::Constraints& bounds) {
    model::PlanRequest request = Priced({2, 4}, {1, 4}, {3, 1});
    request.constraints = bounds;
    return Answer(request);
  };
  const model::PlanResult budget = with({.budget_usd = 2.5});  // a fast device needs 3 USD and more, a slow one 4
  ASSERT_FALSE(budget.step_time);
  ASSERT_EQ(budget.reasons.size(), 1U);
  EXPECT_EQ(budget.reasons[0].constraint, "budget");
  EXPECT_NEAR(budget.reasons[0].needed, 3, 1e-3);
  EXPECT_EQ(budget.reasons[0].available, 2.5);
  EXPECT_THAT(budget.reasons[0].message, HasSubstr("the budget is 2.5: raise it to"));
  EXPECT_EQ(UnitsOf(with({.budget_usd = 3.1})), (std::map<std::string, int>{{"p0", 2}}));
  EXPECT_EQ(UnitsOf(with({.max_units = 2})), (std::map<std::string, int>{{"p0", 2}}));
  EXPECT_EQ(UnitsOf(with({.max_cost_per_hour = 2})), (std::map<std::string, int>{{"p1", 2}}));
  const model::PlanResult slow = with({.max_cost_per_hour = 2, .deadline_seconds = 3600});
  ASSERT_FALSE(slow.step_time);
  ASSERT_EQ(slow.reasons.size(), 2U);
  EXPECT_EQ(slow.reasons[0].constraint, "deadline");
  EXPECT_NEAR(slow.reasons[0].available, 7200, 10);
  EXPECT_EQ(slow.reasons[1].constraint, "maxCostPerHour");
  EXPECT_THAT(slow.reasons[1].message, HasSubstr("maxCostPerHour is 2: raise it to"));
  const model::PlanResult fast = with({.min_throughput = 1e6});
  ASSERT_EQ(fast.reasons.size(), 1U);
  EXPECT_THAT(fast.reasons[0].message, HasSubstr("samples/s, minThroughput is 1000000: lower it to"));
  const model::PlanResult many = with({.min_units = 7});
  ASSERT_EQ(many.reasons.size(), 1U);
  EXPECT_EQ(many.reasons[0].constraint, "minUnits");
  EXPECT_EQ(many.reasons[0].available, 6);
}

// Raising a bound to what a reason says, where it says that this is enough, makes the question feasible.
TEST(ChooseDevicesTest, WhatAReasonNeedsIsEnough) {
  int tried = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    base::Rng rng(seed);
    model::PlanRequest request = RandomClusterRequest(rng, 4);
    request.training.samples_per_epoch = 1e6;
    for (model::Resource& resource : request.resources) resource.price_per_unit_hour = LogUniform(rng, 0.5, 5);
    const model::PlanResult free = Answer(request);
    const Checked plan = Check(request, *free.execution_plan, free.step_time->seconds);
    request.constraints.max_cost_per_hour = 0.6 * plan.usd_per_hour;
    request.constraints.deadline_seconds = (0.5 + rng.Uniform()) * plan.to_end;
    request.constraints.max_units = 1 + static_cast<int>(rng.Below(4));
    const model::PlanResult none = Answer(request);
    for (const model::Reason& reason : none.reasons) {
      if (reason.message.find("still make the request infeasible") != std::string::npos) continue;
      model::PlanRequest changed = request;
      model::Constraints& c = changed.constraints;
      if (reason.constraint == "maxCostPerHour") c.max_cost_per_hour = reason.needed * (1 + 1e-6);
      if (reason.constraint == "deadline") c.deadline_seconds = reason.available * (1 + 1e-6);
      if (reason.constraint == "maxUnits") c.max_units = static_cast<int>(reason.needed);
      EXPECT_TRUE(Answer(changed).step_time) << reason.message;
      ++tried;
    }
  }
  EXPECT_GE(tried, 10);
}

TEST(ChooseDevicesTest, MoneyIsAnObjectiveToo) {
  // A fast device costs 3 USD for the job, a slow one 4.
  model::PlanRequest request = Priced({2, 4}, {1, 4}, {3, 1});
  request.objective = model::Objective::kCost;
  EXPECT_EQ(UnitsOf(Answer(request)), (std::map<std::string, int>{{"p0", 1}}));
  request.objective = model::Objective::kCostPerHour;
  EXPECT_EQ(UnitsOf(Answer(request)), (std::map<std::string, int>{{"p1", 1}}));
  request.constraints.deadline_seconds = 2.5 * 3600;  // for two slow ones
  EXPECT_EQ(UnitsOf(Answer(request)), (std::map<std::string, int>{{"p1", 2}}));
  request.objective = model::Objective::kTime;
  EXPECT_EQ(UnitsOf(Answer(request)), (std::map<std::string, int>{{"p0", 2}, {"p1", 4}}));
}

TEST(ChooseDevicesTest, DevicesWithoutPriceAreAReasonOnlyWhereMoneyCounts) {
  model::PlanRequest request = Priced({2, 4}, {1, 4}, {3, 0});
  const model::PlanResult free = Answer(request);
  ASSERT_TRUE(free.step_time);
  EXPECT_EQ(free.step_time->usd_per_hour, 0);
  EXPECT_EQ(free.step_time->usd, 0);
  request.constraints.max_cost_per_hour = 5;
  const model::PlanResult none = Answer(request);
  ASSERT_EQ(none.reasons.size(), 1U);
  EXPECT_EQ(none.reasons[0].constraint, "price");
  EXPECT_EQ(none.reasons[0].resource_type, "p1");
}

TEST(ChooseDevicesTest, PlannersForFewDevicesPlanOnSomeOfMany) {
  model::PlanRequest request = Priced({6, 6}, {1, 2}, {2, 1});
  request.constraints.max_units = 3;
  const model::PlanResult result = Answer(request, "exact");
  ASSERT_TRUE(result.step_time);
  EXPECT_LE(result.execution_plan->devices.size(), 3U);
}

TEST(ChooseDevicesTest, TooManyChoicesAreThinned) {
  model::PlanRequest request = Priced({16, 16, 16, 16}, {1, 2, 3, 4}, {4, 2.2, 1.2, 1});
  request.constraints.max_cost_per_hour = 50;
  const DeviceProblem problem = ProblemOf(request);
  const DeviceKinds kinds = KindsOf(problem);
  EXPECT_EQ(kinds.devices.size(), 4U);
  const DeviceChoices choices = ChoicesOf(problem, kinds, request.constraints, request.objective);
  EXPECT_FALSE(choices.all);
  EXPECT_LE(choices.choices.size(), kMostChoices);
  for (const DeviceChoice& choice : choices.choices) EXPECT_LE(choice.usd_per_hour, 50 * (1 + 1e-9));
  const model::PlanResult result = Answer(request, "hierarchy", 0.5);
  ASSERT_TRUE(result.step_time);
  EXPECT_LE(result.step_time->usd_per_hour, 50 * (1 + 1e-9));
  EXPECT_EQ(result.step_time->lower_bound_seconds, 0);
  EXPECT_THAT(result.notes.back(), HasSubstr("only some numbers of each kind of device were compared"));
}

TEST(ChooseDevicesTest, DevicesOfAMachineAreOneKindAndThoseOfAnotherAreAnother) {
  model::PlanRequest request = ClusterRequest({4}, {1});
  EXPECT_EQ(KindsOf(ProblemOf(request)).devices.size(), 1U);
  for (int d = 0; d < 4; ++d) request.cluster.devices[static_cast<size_t>(d)].machine = d < 2 ? "a" : "b";
  EXPECT_EQ(KindsOf(ProblemOf(request)).devices, (std::vector<std::vector<int>>{{0, 1}, {2, 3}}));
  request.cluster.links.push_back({"p0-0", "p0-2", 0.1, 1e6});
  EXPECT_EQ(KindsOf(ProblemOf(request)).devices.size(), 4U);
}

TEST(ChooseDevicesTest, TheSameQuestionHasTheSameAnswer) {
  base::Rng rng(5);
  model::PlanRequest request = RandomClusterRequest(rng, 6);
  request.training.samples_per_epoch = 1e6;
  for (model::Resource& resource : request.resources) resource.price_per_unit_hour = LogUniform(rng, 0.5, 5);
  request.constraints.max_units = 3;
  const model::PlanResult one = Answer(request), other = Answer(request);
  EXPECT_EQ(one.execution_plan, other.execution_plan);
  EXPECT_EQ(one.step_time, other.step_time);
}

}  // namespace
}  // namespace medley::sched
