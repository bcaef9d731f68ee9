// Classes of cost, their places, and answers without numbers that are not finite.
#include "scheduler-service/handlers/cost_class.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <thread>
#include <vector>

#include "common/base/mutex.h"
#include "common/base/rng.h"
#include "common/base/testing/status_matchers.h"
#include "scheduler-service/handlers/admission.h"
#include "scheduler-service/handlers/finite.h"
#include "scheduler-service/handlers/request_memory.h"

namespace medley::sched {
namespace {

namespace pb = scheduler::v1;

constexpr base::SteadyTime kNeverEnds = base::SteadyTime::max();

template <typename Request>
CostClass CostClassOf(const Request& request) {
  return CostOf(request).cost;
}

TEST(CostClassTest, TheWeightGrowsWithCellsAndBytes) {
  pb::PlanRequest request;
  const auto add_layers = [&](int layers, size_t name) {
    for (int i = 0; i < layers; ++i) {
      auto& layer = *request.mutable_model()->add_layers();
      layer.set_name(std::string(name, 'x'));
      for (int type = 0; type < 4; ++type) layer.add_profiles();
    }
    return CostOf(request);
  };
  const Cost small = add_layers(4, 3);
  EXPECT_EQ(small, (Cost{CostClass::kTiny, 16}));
  const Cost larger = add_layers(4, 3);
  EXPECT_EQ(larger, (Cost{CostClass::kTiny, 32}));
  EXPECT_EQ(add_layers(1, 40 << 10), (Cost{CostClass::kCheap, 36 + 40}));
  EXPECT_EQ(CostOfReading(1000), (Cost{CostClass::kTiny, 0}));
  EXPECT_EQ(CostOfReading(2'800'000), (Cost{CostClass::kCheap, 2734}));
}

TEST(CostClassTest, FollowsPlannerBudgetAndSize) {
  pb::PlanRequest request;
  for (int i = 0; i < 16; ++i) request.mutable_model()->add_layers()->add_profiles();
  request.add_resources();
  EXPECT_EQ(CostClassOf(request), CostClass::kTiny);
  request.mutable_planner()->set_name("exact");
  request.mutable_planner()->set_time_budget_seconds(10);
  EXPECT_EQ(CostClassOf(request), CostClass::kTiny);
  request.set_simulate(true);
  EXPECT_EQ(CostClassOf(request), CostClass::kCheap);
  request.clear_simulate();
  request.mutable_planner()->set_time_budget_seconds(36000);
  EXPECT_EQ(CostClassOf(request), CostClass::kExpensive);
  request.mutable_planner()->set_time_budget_seconds(1);
  for (const char* name : {"rl-lstm", "brute-force", "genetic", "oracle"}) {
    request.mutable_planner()->set_name(name);
    EXPECT_EQ(CostClassOf(request), CostClass::kExpensive) << name;
  }
  request.mutable_planner()->set_name("auto");
  pb::EvaluateRequest evaluate;
  *evaluate.mutable_request() = request;
  EXPECT_EQ(CostClassOf(evaluate), CostClass::kTiny);
  for (int i = 0; i < 241; ++i) request.mutable_model()->add_layers();
  EXPECT_EQ(CostClassOf(request), CostClass::kCheap);
  for (int i = 0; i < 5000; ++i) request.mutable_model()->add_layers();
  EXPECT_EQ(CostClassOf(request), CostClass::kExpensive);
  EXPECT_EQ(CostClassOf(pb::ParetoRequest()), CostClass::kExpensive);
}

class ClassPlacesTest : public testing::Test {
 protected:
  bool Enters(CostClass cost) {
    auto permit = admission_.Enter(cost, {}, kNeverEnds);
    if (permit.ok()) held_.push_back(*std::move(permit));
    return permit.ok();
  }

  base::SystemClock clock_;
  metrics::Registry metrics_;
  Admission admission_{Admission::ForClasses(4, 0, base::seconds(60)), &metrics_, clock_};
  std::vector<Admission::Permit> held_;
};

TEST_F(ClassPlacesTest, ExpensiveRequestsLeavePlaces) {
  EXPECT_TRUE(Enters(CostClass::kExpensive));
  EXPECT_TRUE(Enters(CostClass::kExpensive));
  EXPECT_FALSE(Enters(CostClass::kExpensive));
  EXPECT_TRUE(Enters(CostClass::kCheap));
  EXPECT_TRUE(Enters(CostClass::kCheap));
  EXPECT_FALSE(Enters(CostClass::kCheap));
  EXPECT_TRUE(Enters(CostClass::kTiny));
  EXPECT_TRUE(Enters(CostClass::kTiny));
  EXPECT_FALSE(Enters(CostClass::kTiny));
  EXPECT_TRUE(Enters(CostClass::kOperator));
  EXPECT_FALSE(Enters(CostClass::kOperator));
  EXPECT_THAT(metrics_.Text(), testing::HasSubstr("medley_scheduler_class_in_flight{class=\"expensive\"} 2"));
  held_.clear();
  EXPECT_EQ(admission_.running(), 0);
}

TEST_F(ClassPlacesTest, OnePlaceForEachClassIsTheLeast) {
  Admission narrow(Admission::ForClasses(1, 0, base::seconds(60)), nullptr, clock_);
  const auto expensive = narrow.Enter(CostClass::kExpensive, {}, kNeverEnds);
  const auto cheap = narrow.Enter(CostClass::kCheap, {}, kNeverEnds);
  const auto of_operator = narrow.Enter(CostClass::kOperator, {}, kNeverEnds);
  EXPECT_THAT(expensive, base::IsOk());
  EXPECT_THAT(cheap, base::IsOk());
  EXPECT_THAT(of_operator, base::IsOk());
}

TEST_F(ClassPlacesTest, TheOperatorIsServedFirst) {
  Admission one({.max_running = 1, .max_expensive = 1, .max_waiting = 4, .max_wait = base::seconds(60)}, nullptr,
                clock_);
  auto first = one.Enter(CostClass::kExpensive, {}, kNeverEnds);
  ASSERT_THAT(first, base::IsOk());
  std::optional<Admission::Permit> held(*std::move(first));
  base::Mutex mutex;
  std::vector<CostClass> order;
  std::vector<std::jthread> threads;
  for (const CostClass cost : {CostClass::kExpensive, CostClass::kCheap, CostClass::kOperator}) {
    const int before = one.waiting();
    threads.emplace_back([&, cost] {
      const auto permit = one.Enter(cost, {}, kNeverEnds);
      EXPECT_THAT(permit, base::IsOk());
      base::MutexLock lock(mutex);
      order.push_back(cost);
    });
    while (one.waiting() == before) std::this_thread::yield();
  }
  held.reset();
  threads.clear();
  EXPECT_THAT(order, testing::ElementsAre(CostClass::kOperator, CostClass::kCheap, CostClass::kExpensive));
}

// Whatever the others are and hold, one of the places of tiny requests is theirs alone.
TEST_F(ClassPlacesTest, NoMixtureOfLargeRequestsTakesThePlacesOfTinyOnes) {
  constexpr uint64_t kSeed = 44;
  RecordProperty("seed", std::to_string(kSeed));
  base::Rng rng(kSeed);
  for (int step = 0; step < 2000; ++step) {
    if (rng.Below(3) == 0 && !held_.empty()) {
      held_.pop_back();
    } else {
      Enters(rng.Below(2) == 0 ? CostClass::kCheap : CostClass::kExpensive);
    }
    const auto tiny = admission_.Enter(CostClass::kTiny, {}, kNeverEnds);
    ASSERT_THAT(tiny, base::IsOk()) << step;
    ASSERT_THAT(admission_.Enter(CostClass::kTiny, {}, kNeverEnds), base::IsOk()) << step;
  }
}

TEST_F(ClassPlacesTest, TheLightestOfAClassIsServedFirst) {
  Admission one({.max_running = 1, .max_waiting = 8, .max_wait = base::seconds(60)}, nullptr, clock_);
  auto first = one.Enter(CostClass::kCheap, {}, kNeverEnds);
  ASSERT_THAT(first, base::IsOk());
  std::optional<Admission::Permit> held(*std::move(first));
  base::Mutex mutex;
  std::vector<int64_t> order;
  std::vector<std::jthread> threads;
  for (const int64_t weight : {4096, 300, 4096, 7}) {
    const int before = one.waiting();
    threads.emplace_back([&, weight] {
      const auto permit = one.Enter(Cost{CostClass::kCheap, weight}, {}, kNeverEnds);
      EXPECT_THAT(permit, base::IsOk());
      base::MutexLock lock(mutex);
      order.push_back(weight);
    });
    while (one.waiting() == before) std::this_thread::yield();
  }
  held.reset();
  threads.clear();
  EXPECT_THAT(order, testing::ElementsAre(7, 300, 4096, 4096));
}

TEST(RequestMemoryTest, LargeRequestsLeaveAQuarterToSmallOnes) {
  constexpr int64_t kAll = 16 << 20;
  RequestMemory memory(kAll);
  const RequestMemory::Share most(memory, kAll / 4 * 3), large(memory, RequestMemory::kSmall + 1);
  EXPECT_TRUE(most);
  EXPECT_FALSE(large);
  EXPECT_TRUE(RequestMemory::Share(memory, RequestMemory::kSmall));
}

TEST(RequestMemoryTest, IsSharedAndGivenBack) {
  RequestMemory memory(100);
  {
    const RequestMemory::Share most(memory, 80), too_much(memory, 21), rest(memory, 20);
    EXPECT_TRUE(most);
    EXPECT_FALSE(too_much);
    EXPECT_TRUE(rest);
  }
  EXPECT_TRUE(RequestMemory::Share(memory, 100));
}

TEST(FiniteTest, NamesTheFirstNumberThatIsNotFinite) {
  pb::PlanResponse response;
  response.mutable_plan()->set_cost_per_hour(1);
  response.mutable_plan()->add_stages()->set_throughput(2);
  EXPECT_EQ(NotFinite(response), "");
  response.mutable_plan()->mutable_stages(0)->set_throughput(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(NotFinite(response), "plan.stages[0].throughput");
  response.mutable_plan()->set_cost_per_hour(std::numeric_limits<double>::infinity());
  EXPECT_THAT(NotFinite(response), testing::StartsWith("plan."));
}

}  // namespace
}  // namespace medley::sched
