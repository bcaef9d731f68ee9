#include "operator/records/program_plan.h"

#include <gmock/gmock.h>

#include <optional>
#include <random>

#include "common/base/testing/status_matchers.h"
#include "common/model/execution_plan.h"
#include "common/model/plan_result.h"
#include "common/model/planning.h"

namespace medley::ops {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

// 100 steps of 10 samples; a unit takes `seconds` for a step and costs `usd` an hour.
void AddPool(const std::string& name, double seconds, double usd, int limit, model::PlanRequest& request) {
  if (request.model.layers.empty()) {
    request.model.layers.emplace_back().name = "program";
    request.training.profile_batch_size = 10;
    request.training.samples_per_epoch = 1000;
  }
  model::LayerProfile& numbers = request.model.layers[0].profiles.emplace_back();
  numbers.resource_type = name;
  numbers.compute_seconds = seconds;
  numbers.compute_parallel = 1;  // as the profiler says
  model::Resource& resource = request.resources.emplace_back();
  resource.name = name;
  resource.price_per_unit_hour = usd;
  resource.limit = limit;
}

TEST(ProgramPlanTest, TakesTheCheapestPoolAndTheFewestUnits) {
  model::PlanRequest request;
  AddPool("slow", 1, 1, 4, request);
  AddPool("fast", 0.5, 3, 4, request);
  const model::PlanResult result = PlanProgram(request, {});
  ASSERT_TRUE(result.plan && result.execution_plan);
  EXPECT_EQ(model::Summary(*result.execution_plan, {"program"}), "program@1xslow");
  EXPECT_NEAR(result.plan->cost_usd, 100.0 / 3600, 1e-9);
  EXPECT_THAT(model::Validate(*result.execution_plan, 1), base::IsOk());
}

TEST(ProgramPlanTest, ADeadlineNeedsMoreUnits) {
  model::PlanRequest request;
  AddPool("slow", 1, 1, 4, request);
  AddPool("fast", 0.5, 3, 4, request);
  request.constraints.deadline_seconds = 30;
  const model::PlanResult four = PlanProgram(request, {});
  ASSERT_TRUE(four.execution_plan);
  EXPECT_EQ(model::Summary(*four.execution_plan, {"program"}), "program@4xslow");
  EXPECT_THAT(model::Validate(*four.execution_plan, 1), base::IsOk());
  // Sizes that the program cannot have are left out.
  EXPECT_EQ(model::Summary(*PlanProgram(request, {1, 2}).execution_plan, {"program"}), "program@2xfast");
}

TEST(ProgramPlanTest, SaysWhatIsMissing) {
  model::PlanRequest request;
  AddPool("slow", 1, 1, 4, request);
  request.constraints.deadline_seconds = 10;
  const model::PlanResult late = PlanProgram(request, {});
  EXPECT_FALSE(late.plan);
  ASSERT_THAT(late.reasons, SizeIs(1));
  EXPECT_EQ(late.reasons[0].message, "deadline: 10 s are left, the program needs 25 s on 4 units of pool slow");
  const model::PlanResult large = PlanProgram(request, {8});
  ASSERT_THAT(large.reasons, SizeIs(1));
  EXPECT_EQ(large.reasons[0].constraint, "limit");
  EXPECT_EQ(large.reasons[0].needed, 8);
}

// Two units were as fast as one, so they are not bought; on another pool the program scales alike.
TEST(ProgramPlanTest, ChoosesByWhatWasMeasured) {
  model::PlanRequest request;
  AddPool("slow", 1, 1, 8, request);
  AddPool("fast", 0.5, 3, 8, request);
  request.objective = model::Objective::kTime;
  EXPECT_EQ(model::Summary(*PlanProgram(request, {}).execution_plan, {"program"}), "program@8xfast");
  model::PlanRequest measured = request;
  SetScaling(measured.model, {{"slow", {{2, 0.75, 0.01}, {4, 0.75, 0.01}, {8, 1.05, 0.01}}}});
  const model::PlanResult result = PlanProgram(measured, {1, 2, 4, 8});
  ASSERT_TRUE(result.plan);
  EXPECT_EQ(model::Summary(*result.execution_plan, {"program"}), "program@2xfast");
  EXPECT_NEAR(result.plan->throughput, 10 / (0.5 * 0.75), 2.0);
  EXPECT_GT(measured.model.layers[0].profiles[0].spread, 0);
}

TEST(ProgramPlanTest, TheMeasuredSizeIsPredictedAsMeasured) {
  model::PlanRequest request;
  AddPool("slow", 1, 1, 4, request);
  SetScaling(request.model, {{"slow", {{2, 0.6, 0.01}}}});
  request.constraints.min_units = request.constraints.max_units = 2;
  EXPECT_NEAR(PlanProgram(request, {}).plan->throughput, 10 / 0.6, 0.05);
  // The job's own measurement on one unit counts, not the profiler's.
  SetScaling(request.model, {{"slow", {{1, 2, 0.01}}}});
  request.constraints.min_units = request.constraints.max_units = 1;
  EXPECT_NEAR(PlanProgram(request, {}).plan->throughput, 5, 0.05);
}

// What the profiler says of several units holds until the job has measured, and then bends to it.
TEST(ProgramPlanTest, TheProfilersCurveIsPlannedWithAndCorrected) {
  model::PlanRequest request;
  AddPool("slow", 1, 1, 4, request);
  model::LayerProfile& profile = request.model.layers[0].profiles[0];
  profile.compute_parallel = 0.6;  // seconds: 1, 0.7 and 0.55 on 1, 2 and 4 units
  profile.spread = 0.01;
  const auto on = [](model::PlanRequest asked, int units) {
    asked.constraints.min_units = asked.constraints.max_units = units;
    return 10 / PlanProgram(asked, {}).plan->throughput;
  };
  EXPECT_NEAR(on(request, 4), 0.55, 1e-9);
  model::PlanRequest measured = request;
  SetScaling(measured.model, {{"slow", {{2, 0.9, 0.01}}}});
  EXPECT_NEAR(on(measured, 2), 0.9, 0.02);
  EXPECT_NEAR(on(measured, 1), 1, 0.02);
  EXPECT_GT(on(measured, 4), 0.6) << "the network costs what the profiler has not seen";
  // Units that are half as fast as the profiler's are so on each number of them.
  measured = request;
  SetScaling(measured.model, {{"slow", {{1, 2, 0.01}}}});
  EXPECT_NEAR(on(measured, 4), 1.1, 0.02);
}

// Against all pools and sizes, computed in another way.
TEST(ProgramPlanTest, NoChoiceIsBetter) {
  std::mt19937 random(7);
  const auto draw = [&](double least, double most) { return std::uniform_real_distribution<>(least, most)(random); };
  int feasible = 0;
  for (int round = 0; round < 500; ++round) {
    model::PlanRequest request;
    const int pools = static_cast<int>(draw(1, 4));
    std::vector<double> seconds, usd;
    for (int p = 0; p < pools; ++p) {
      seconds.push_back(draw(0.1, 2));
      usd.push_back(draw(0.1, 5));
      AddPool("p" + std::to_string(p), seconds.back(), usd.back(), static_cast<int>(draw(0, 6)), request);
    }
    std::vector<int> legal;
    if (draw(0, 1) < 0.5) legal = {1, 2, 4};
    if (draw(0, 1) < 0.5) request.constraints.deadline_seconds = draw(10, 100);
    if (draw(0, 1) < 0.5) request.constraints.budget_usd = draw(0.01, 0.1);
    if (draw(0, 1) < 0.3) request.constraints.max_units = 3;
    if (draw(0, 1) < 0.3) request.objective = model::Objective::kTime;
    std::optional<double> best;
    for (int p = 0; p < pools; ++p) {
      for (int units = 1; units <= request.resources[static_cast<size_t>(p)].limit; ++units) {
        const bool is_legal = legal.empty() || units == 1 || units == 2 || units == 4;
        if (!is_legal || (request.constraints.max_units > 0 && units > request.constraints.max_units)) continue;
        const double time = 100 * seconds[static_cast<size_t>(p)] / units;
        const double cost = time / 3600 * units * usd[static_cast<size_t>(p)];
        if (request.constraints.deadline_seconds > 0 && time > request.constraints.deadline_seconds) continue;
        if (request.constraints.budget_usd > 0 && cost > request.constraints.budget_usd) continue;
        const double value = request.objective == model::Objective::kTime ? time : cost;
        best = best ? std::min(*best, value) : value;
      }
    }
    const model::PlanResult result = PlanProgram(request, legal);
    ASSERT_EQ(result.plan.has_value(), best.has_value()) << "round " << round;
    EXPECT_NE(result.plan.has_value(), !result.reasons.empty()) << "round " << round;
    if (!best) continue;
    ++feasible;
    const double value =
        request.objective == model::Objective::kTime ? result.plan->execution_seconds : result.plan->cost_usd;
    EXPECT_NEAR(value, *best, 1e-6) << "round " << round;
  }
  EXPECT_GT(feasible, 100);
}

}  // namespace
}  // namespace medley::ops
