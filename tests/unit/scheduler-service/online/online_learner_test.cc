// Simulated jobs run the policy's schedules, and their measurements, which differ from the cost model, train the
// policy.
#include "scheduler-service/online/online_learner.h"
#include "common/model/observation.h"

#include <gtest/gtest.h>

#include <thread>

#include "common/base/hash.h"
#include "common/base/testing/fake_clock.h"
#include "common/base/testing/status_matchers.h"
#include "common/model/execution_plan.h"
#include "scheduler-service/cost/evaluate.h"
#include "scheduler-service/cost/problem.h"
#include "scheduler-service/planner/planners.h"
#include "scheduler-service/policy_net/byte_stream.h"

namespace medley::sched {
namespace {

constexpr int kLayers = 8;

// A request with three types whose work divides perfectly; `liar_speed` multiplies the seconds of the third.
model::PlanRequest World(double liar_speed) {
  model::PlanRequest request;
  request.model.name = "world";
  request.resources = {{"cpu", model::ResourceClass::kCpu, 0.05, 400},
                       {"honest", model::ResourceClass::kGpu, 2, 40},
                       {"liar", model::ResourceClass::kGpu, 1.5, 40}};
  for (int i = 0; i < kLayers; ++i) {
    model::Layer layer;
    layer.name = fmt::format("l{}", i);
    layer.kind = i == 0 ? "EMBEDDING" : "FULLY_CONNECTED";
    layer.input_bytes = 100 + i;
    layer.weight_bytes = 1e5;
    const double heavy = i == 0 ? 0.2 : 1;  // the first layer is cheap on the CPU
    for (const auto& [type, seconds] : {std::pair{"cpu", 0.5}, {"honest", 0.006}, {"liar", 0.004 * liar_speed}}) {
      model::LayerProfile p;
      p.resource_type = type;
      const bool cpu = std::string_view(type) == "cpu";
      p.compute_seconds = cpu && i == 0 ? 0.01 : seconds * heavy * (i == 0 ? 10 : 1);
      p.compute_parallel = 0.99;
      p.sync_seconds = 0.0005;
      p.transfer_seconds = 0.001;
      p.comm_parallel = 0.9;
      layer.profiles.push_back(p);
    }
    request.model.layers.push_back(layer);
  }
  request.training.profile_batch_size = 64;
  request.training.samples_per_epoch = 1e8;
  request.constraints.min_throughput = 8000;
  request.planner.name = "rl-lstm";
  return request;
}

Solution Solve(const StagePlanner& planner, const model::PlanRequest& request) {
  const base::FakeClock clock;
  const auto problem = Problem::Compile(request);
  EXPECT_THAT(problem, base::IsOk());
  auto solution = planner.SolveStages(*problem, 1, Budget(clock, base::SteadyTime::max(), {}));
  EXPECT_THAT(solution, base::IsOk());
  return solution.value();
}

std::vector<std::string> TypesOf(const model::PlanRequest& request, const Solution& solution) {
  std::vector<std::string> types(kLayers);
  for (const StageChoice& s : solution.best->stages) {
    for (int i = s.first; i <= s.last; ++i) {
      types[static_cast<size_t>(i)] = request.resources[static_cast<size_t>(s.type)].name;
    }
  }
  return types;
}

// The measurements of a job that runs `choice` if `reality` has the true costs.
model::JobObservation Measure(const model::PlanRequest& asked, const model::PlanRequest& reality,
                              const std::vector<StageChoice>& choice) {
  const Evaluation truth = Evaluate(*Problem::Compile(reality), choice);
  model::JobObservation observation;
  observation.request = asked;
  for (const model::ProvisionedStage& s : truth.plan.stages) {
    observation.stages.push_back(
        {s.first_layer, s.last_layer, s.resource_type, s.units, s.compute_seconds, s.comm_seconds});
  }
  observation.throughput = truth.plan.throughput;
  observation.batch_size = 64;
  observation.server_units = truth.plan.server_units;
  observation.usd_per_hour = truth.plan.cost_per_hour;
  observation.job_uid = "job";
  observation.generation = 1;
  return observation;
}

model::PlanRequest Inference(const OnlineLearner& learner, model::PlanRequest request) {
  request.planner.policy.name = "online";
  request.planner.policy.inference_only = true;
  EXPECT_THAT(learner.Resolve(request), base::IsOk());
  return request;
}

// Observes `count` runs, each with the schedule that the policy infers at that time.
void Live(OnlineLearner& learner, const model::PlanRequest& asked, const model::PlanRequest& reality, int count) {
  Solution next = Solve(*MakeExact(), asked);  // the first run uses the optimum of the cost model
  for (int i = 0; i < count; ++i) {
    ASSERT_THAT(learner.Observe(Measure(asked, reality, next.best->stages)), base::IsOk());
    next = Solve(*MakeRlLstm(), Inference(learner, asked));
    ASSERT_TRUE(next.best.has_value());
  }
}

TEST(OnlineLearnerTest, MeasurementsOverrideTheCostModel) {
  const model::PlanRequest asked = World(1), reality = World(4);
  const std::vector<std::string> modelled = TypesOf(asked, Solve(*MakeExact(), asked));
  const Solution cheapest = Solve(*MakeExact(), reality);
  const std::vector<std::string> best = TypesOf(asked, cheapest);
  ASSERT_NE(modelled, best) << "the cost model must be wrong about the cheapest schedule";
  OnlineLearner learner({});
  Live(learner, asked, reality, 12);
  EXPECT_EQ(TypesOf(asked, Solve(*MakeRlLstm(), Inference(learner, asked))), best);
}

TEST(OnlineLearnerTest, ACorrectCostModelIsKept) {
  const model::PlanRequest asked = World(1);
  OnlineLearner learner({});
  Live(learner, asked, asked, 5);
  EXPECT_EQ(TypesOf(asked, Solve(*MakeRlLstm(), Inference(learner, asked))),
            TypesOf(asked, Solve(*MakeExact(), asked)));
}

TEST(OnlineLearnerTest, IsDeterministicAndContinuesAfterSaveAndLoad) {
  const model::PlanRequest asked = World(1), reality = World(4);
  OnlineLearner a({}), b({}), c({});
  Live(a, asked, reality, 3);
  Live(b, asked, reality, 3);
  ASSERT_EQ(a.Save(), b.Save());
  ASSERT_THAT(c.Load(a.Save()), base::IsOk());
  EXPECT_EQ(c.Save(), a.Save());
  const model::JobObservation next = Measure(asked, reality, Solve(*MakeGpuOnly(), asked).best->stages);
  ASSERT_THAT(a.Observe(next), base::IsOk());
  ASSERT_THAT(c.Observe(next), base::IsOk());
  EXPECT_EQ(c.Save(), a.Save());
  ASSERT_EQ(c.Names(), std::vector<std::string>{OnlineLearner::NameOf(asked)});
}

TEST(OnlineLearnerTest, RejectsInvalidObservations) {
  const model::PlanRequest asked = World(1);
  OnlineLearner learner({});
  model::PlanRequest request = asked;
  request.planner.policy.name = "nobody";
  EXPECT_THAT(learner.Resolve(request), base::StatusIs(absl::StatusCode::kNotFound));
  model::JobObservation observation = Measure(asked, asked, Solve(*MakeExact(), asked).best->stages);
  observation.request.resources[0].price_per_unit_hour = 0;
  EXPECT_THAT(learner.Observe(observation), base::StatusIs(absl::StatusCode::kInvalidArgument));
  ASSERT_TRUE(learner.Names().empty());
  Live(learner, asked, asked, 1);
  const std::string good = learner.Save();
  EXPECT_THAT(learner.Load("x"), base::StatusIs(absl::StatusCode::kInvalidArgument));
  for (size_t i = 0; i < good.size(); i += 97) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 4);
    ASSERT_THAT(learner.Load(bad), base::StatusIs(absl::StatusCode::kInvalidArgument)) << "byte " << i;
  }
  EXPECT_EQ(learner.Save(), good) << "a refused file changes nothing";
}

TEST(OnlineLearnerTest, MemoryIsBounded) {
  OnlineLearner learner({.most_models = 2, .first_rounds = 1, .rounds = 1});
  for (int i = 0; i < 4; ++i) {
    model::PlanRequest asked = World(1);
    asked.model.name = fmt::format("m{}", i);
    Live(learner, asked, asked, 1);
  }
  const std::vector<std::string> names = learner.Names();
  ASSERT_EQ(names.size(), 2U);
  EXPECT_EQ(names[0].substr(0, 10), "rl-lstm/m2");
}

// False reports of one tenant about the model of another.
TEST(OnlineLearnerTest, WhatOneTenantReportsTrainsNoPolicyOfAnother) {
  const model::PlanRequest asked = World(1);
  const auto stages = Solve(*MakeExact(), asked).best->stages;
  OnlineLearner alone({.first_rounds = 5, .rounds = 2}), among({.first_rounds = 5, .rounds = 2});
  const std::string name = OnlineLearner::NameOf(asked);
  ASSERT_THAT(alone.Observe(Measure(asked, asked, stages), "honest"), base::IsOk());
  ASSERT_THAT(among.Observe(Measure(asked, asked, stages), "honest"), base::IsOk());
  for (int i = 0; i < 6; ++i) {
    model::JobObservation lie = Measure(asked, asked, Solve(*MakeGpuOnly(), asked).best->stages);
    lie.usd_per_hour /= 1000;
    ASSERT_THAT(among.Observe(lie, "evil"), base::IsOk());
    ASSERT_THAT(among.Observe(lie), base::IsOk());
  }
  EXPECT_EQ(*among.Policy(name, "honest"), *alone.Policy(name, "honest"));
  EXPECT_NE(*among.Policy(name, "evil"), *among.Policy(name, "honest"));
  // Nobody reads the policies of others, nor their names.
  model::PlanRequest request = asked;
  for (const std::string& wanted : {std::string("online"), name, base::HashHex("honest") + "@" + name}) {
    request.planner.policy.name = wanted;
    EXPECT_THAT(among.Resolve(request, "stranger"),
                base::StatusIs(absl::StatusCode::kNotFound, testing::HasSubstr("known policies: none")));
  }
  EXPECT_EQ(among.Names("honest"), std::vector<std::string>{name});
  // Also after a restart.
  OnlineLearner again({});
  ASSERT_THAT(again.Load(among.Save()), base::IsOk());
  EXPECT_EQ(*again.Policy(name, "honest"), *alone.Policy(name, "honest"));
}

TEST(OnlineLearnerTest, ManyModelsOfOneTenantDisplaceNoneOfAnother) {
  OnlineLearner learner({.most_models = 3, .first_rounds = 1, .rounds = 1});
  const model::PlanRequest asked = World(1);
  const auto stages = Solve(*MakeExact(), asked).best->stages;
  ASSERT_THAT(learner.Observe(Measure(asked, asked, stages), "honest"), base::IsOk());
  for (int i = 0; i < 5; ++i) {
    model::PlanRequest other = asked;
    other.model.name = fmt::format("m{}", i);
    ASSERT_THAT(learner.Observe(Measure(other, other, stages), "evil"), base::IsOk());
  }
  EXPECT_EQ(learner.Names("honest").size(), 1U);
  EXPECT_EQ(learner.Names("evil").size(), 2U);
}

// A file of a version that knew no tenants: its names have no '@'.
TEST(OnlineLearnerTest, AFileWithoutTenantsIsOfAllCallersWithoutOne) {
  const model::PlanRequest asked = World(1);
  OnlineLearner learner({.first_rounds = 1, .rounds = 1});
  ASSERT_THAT(learner.Observe(Measure(asked, asked, Solve(*MakeExact(), asked).best->stages)), base::IsOk());
  const std::string now = learner.Save();
  const std::string name = OnlineLearner::NameOf(asked);
  const size_t at = now.find("@" + name);
  ASSERT_NE(at, std::string::npos);
  std::string before = now.substr(0, at - sizeof(uint32_t));
  policy_net::PutValue(before, static_cast<uint32_t>(name.size()));
  before += now.substr(at + 1, now.size() - at - 1 - sizeof(uint64_t));
  policy_net::PutValue(before, base::Hash64(before));
  OnlineLearner loaded({});
  ASSERT_THAT(loaded.Load(before), base::IsOk());
  EXPECT_EQ(*loaded.Policy(name), *learner.Policy(name));
  EXPECT_EQ(loaded.Save(), now);
}

TEST(OnlineLearnerTest, ManyThreadsObserveAndRead) {
  const model::PlanRequest asked = World(1);
  OnlineLearner learner({.most_models = 3, .first_rounds = 2, .rounds = 1});
  const auto stages = Solve(*MakeExact(), asked).best->stages;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        model::PlanRequest mine = asked;
        mine.model.name = fmt::format("m{}", t);
        for (int i = 0; i < 8; ++i) {
          EXPECT_THAT(learner.Observe(Measure(mine, mine, stages)), base::IsOk());
          const auto policy = learner.Policy(OnlineLearner::NameOf(mine));
          EXPECT_TRUE(policy.ok() || policy.status().code() == absl::StatusCode::kNotFound);
          EXPECT_FALSE(learner.Save().empty());
        }
      });
    }
  }
  EXPECT_EQ(learner.Names().size(), 3U);
}

}  // namespace
}  // namespace medley::sched
