#include "operator/records/interruptions.h"

#include "common/base/testing/status_matchers.h"
#include "common/model/model.h"
#include "common/model/plan_result.h"
#include "common/model/planning.h"
#include "common/model/profile.h"
#include "operator/api/pool_lifetimes.h"
#include "operator/records/program_plan.h"

namespace medley::ops {
namespace {

using base::IsOk;
using kube::Json;

TrainingJob Job(const Json& objective, const Json& more = Json::object()) {
  Json spec = {{"model", {{"name", "mlp"}}}, {"data", Json::object()}, {"objective", objective}};
  spec.update(more);
  auto job = TrainingJob::FromObject(kube::Object(Json{{"metadata", {{"name", "j"}}}, {"spec", spec}}));
  EXPECT_THAT(job, IsOk());
  return *job;
}

// A unit of `spot` costs 1 USD an hour and is lost once an hour; a start takes 349 s, and the first step 11 s more.
struct Pools {
  ResourcePool spot, steady;
  Pools() {
    spot.name = "spot";
    spot.usd_per_unit_hour = 1;
    spot.offering = model::Offering{"aws", "r", "", "p3", "spot", 1};
    const PoolLifetimes seen{100 - kPriorLifeHours, 99, 349, base::WallTime(base::seconds(1'700'000'000))};
    spot.object = kube::Object(Json{{"status", {{"interruptions", seen.ToJson()}}}});
    steady = spot;  // the same record says nothing: these machines stay
    steady.name = "steady";
    steady.offering->capacity_type = "on-demand";
  }
  std::vector<PoolOffer> Offers() const { return {{&spot, 4}, {&steady, 4}}; }
};

model::Profile ProfileOf() {
  model::Profile profile;
  profile.profile_batch_size = 64;
  profile.samples_per_epoch = 64 * 3600;
  model::Layer& layer = profile.model.layers.emplace_back();
  layer.name = "all";
  for (const char* pool : {"spot", "steady"}) {
    model::LayerProfile& numbers = layer.profiles.emplace_back();
    numbers.resource_type = pool;
    numbers.compute_seconds = 1;
    numbers.compute_parallel = 1;
  }
  return profile;
}

const Json kCheapest = {{"minThroughput", 10}};

TEST(InterruptionsTest, AUnitThatIsLostOnceAnHourCostsTheTimeOfItsSuccessorToo) {
  const Pools pools;
  const TrainingJob job = Job(kCheapest);
  EXPECT_DOUBLE_EQ(LostShareOf(job, pools.spot), 0.1);
  EXPECT_EQ(LostShareOf(job, pools.steady), 0);
  const model::PlanRequest request = BuildPlanRequest(job, ProfileOf(), pools.Offers(), {});
  EXPECT_DOUBLE_EQ(request.resources[0].price_per_unit_hour, 1.1);
  EXPECT_EQ(request.resources[1].price_per_unit_hour, 1);
}

TEST(InterruptionsTest, AProgramAlsoLosesHalfOfWhatItDidBetweenSaves) {
  const Pools pools;
  const TrainingJob job =
      Job(kCheapest, {{"program", {{"command", {"python3", "train.py"}}}}, {"checkpoint", {{"interval", "20m"}}}});
  ASSERT_TRUE(job.program.has_value());
  EXPECT_NEAR(LostShareOf(job, pools.spot), (349 + 11 + 600) / 3600.0, 5e-4);
}

TEST(InterruptionsTest, APoolOfWhichNothingIsKnownHasItsOwnPrice) {
  Pools pools;
  pools.spot.object = kube::Object(Json::object());
  EXPECT_EQ(LostShareOf(Job(kCheapest), pools.spot), 0);
  pools.spot.object = kube::Object(Json{{"status", {{"interruptions", "often"}}}});
  EXPECT_EQ(LostShareOf(Job(kCheapest), pools.spot), 0);
}

TEST(InterruptionsTest, GoalsOfTimeAndBoundsByTheHourSeeThePriceItself) {
  const Pools pools;
  for (const Json& objective : {Json{{"fastest", true}}, Json{{"minimize", "UsdPerHour"}, {"minThroughput", 10}},
                                Json{{"minThroughput", 10}, {"maxUsdPerHour", "3"}}}) {
    const model::PlanRequest request = BuildPlanRequest(Job(objective), ProfileOf(), pools.Offers(), {});
    EXPECT_EQ(request.resources[0].price_per_unit_hour, 1) << objective;
  }
}

// The service's part of an answer: `units` of one pool for an hour.
model::PlanResult AnswerTo(const model::PlanRequest& request, const std::string& pool, int units) {
  model::PlanResult result;
  result.resources = request.resources;
  result.plan.emplace().stages.push_back({0, 0, pool, units});
  for (const model::Resource& resource : request.resources) {
    if (resource.name == pool) result.plan->cost_per_hour = units * resource.price_per_unit_hour;
  }
  result.plan->cost_usd = result.plan->cost_per_hour;
  result.execution_plan.emplace().estimate.usd_per_hour = result.plan->cost_per_hour;
  return result;
}

TEST(InterruptionsTest, ThePriceThatIsPaidIsShownAndWhatWillBeLostCounts) {
  const Pools pools;
  const TrainingJob job = Job(kCheapest);
  const model::PlanRequest request = BuildPlanRequest(job, ProfileOf(), pools.Offers(), {});
  for (const auto& [pool, usd] : {std::pair("spot", 3.3), std::pair("steady", 3.0)}) {
    const model::PlanResult result = WithPaidPrices(job, pools.Offers(), request, AnswerTo(request, pool, 3));
    EXPECT_NEAR(result.plan->cost_per_hour, 3, 1e-12);
    EXPECT_NEAR(result.execution_plan->estimate.usd_per_hour, 3, 1e-12);
    EXPECT_NEAR(result.plan->cost_usd, usd, 1e-12) << "with what will be lost";
    EXPECT_NEAR(result.resources[0].price_per_unit_hour, 1, 1e-12);
  }
}

// Each of its units pays for the losses of all of them.
TEST(InterruptionsTest, AProgramOnManySpotUnitsCostsMoreThanItsPrice) {
  const Pools pools;
  TrainingJob job = Job({{"minThroughput", 200}}, {{"program", {{"command", {"python3", "train.py"}}}}});
  for (const auto& [steady_price, chosen] : {std::pair(1.3, "steady"), std::pair(1.5, "spot")}) {
    Pools priced = pools;
    priced.steady.usd_per_unit_hour = steady_price;
    const model::PlanRequest request = BuildPlanRequest(job, ProfileOf(), priced.Offers(), {});
    EXPECT_EQ(request.resources[0].price_per_unit_hour, 1);
    const model::PlanResult plan = PlanProgram(request, {4}, LostSharesOf(job, priced.Offers()));
    ASSERT_TRUE(plan.plan.has_value());
    EXPECT_EQ(plan.plan->stages[0].resource_type, chosen) << "4 x 0.1 of the time is lost";
  }
}

}  // namespace
}  // namespace medley::ops
