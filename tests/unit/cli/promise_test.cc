// What the operator promises of a plan, and what `medley simulate` says of the same plan and profile.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/rng.h"
#include "common/base/testing/status_matchers.h"
#include "common/model/execution_plan.h"
#include "common/model/plan_result.h"
#include "common/model/planning.h"
#include "common/model/profile.h"
#include "common/model/value_text.h"
#include "operator/api/training_job.h"
#include "operator/records/plan_request.h"
#include "scheduler-service/planner/builtin.h"
#include "scheduler-service/planner/plan.h"
#include "scheduler-service/simulate/plan_simulation.h"

namespace medley::cli {
namespace {

using base::IsOk;
using kube::Json;

// The profiles of two pools, merged as the operator merges them: units of a part of a core, whose messages cost
// something, with an embedding on servers.
model::Profile RandomProfile(base::Rng& rng, int micro_batches, bool served) {
  std::vector<model::Profile> profiles;
  for (const char* pool : {"old", "new"}) {
    model::Profile& profile = profiles.emplace_back();
    profile.id = "p";
    profile.profile_batch_size = 512;
    profile.samples_per_epoch = 100'000;
    profile.micro_batches = micro_batches;
    profile.model.name = "m";
    profile.links = {
        {pool, pool, rng.Uniform(1e-5, 1e-3), rng.Uniform(1e7, 1e9), rng.Uniform(0, 2e-4), 1e-9, 2e-5, 2e6}};
    profile.units = {{pool, rng.Uniform(0.1, 0.9), rng.Uniform(0, 1) < 0.5 ? 0.1 : 0.01}};
    for (const char* name : {"embedding", "a", "b", "c", "loss"}) {
      model::Layer& layer = profile.model.layers.emplace_back();
      layer.name = name;
      layer.output_bytes = 400;
      layer.weight_bytes = std::string(name) == "loss" ? 0 : 4e5;
      model::LayerProfile& times = layer.profiles.emplace_back();
      times.resource_type = pool;
      times.compute_seconds = rng.Uniform(0.002, 0.02);
      times.burst_seconds = 0.9 * times.compute_seconds;
      times.undivided_seconds = 0.95 * times.compute_seconds;
      times.undivided_parallel = micro_batches > 4 ? 0.9 : 0;
      times.compute_parallel = rng.Uniform(0.5, 1);
      times.sync_seconds = 0.002;
      times.sync_processor_seconds = 0.0005;
      times.transfer_seconds = 0.001;
      times.comm_parallel = 0.5;
      times.forward_part = 0.3;
      times.update_part = 0.1;
      layer.sparse = served && std::string(name) == "embedding";
      if (layer.sparse) times.server_seconds = rng.Uniform(1e-4, 4e-3);
    }
  }
  auto merged = ops::MergeProfiles(profiles);
  EXPECT_THAT(merged, IsOk());
  return *std::move(merged);
}

TEST(PromiseTest, IsWhatMedleySimulateSays) {
  base::SystemClock clock;
  base::Rng rng(20261129);
  int plans = 0, pipelines = 0;
  for (int round = 0; round < 120; ++round) {
    const int micro_batches = round % 3 == 0 ? 16 : 4;
    const model::Profile profile = RandomProfile(rng, micro_batches, round % 2 == 0);
    const auto job = ops::TrainingJob::FromObject(kube::Object(
        Json{{"metadata", {{"name", "j"}}},
             {"spec",
              {{"model", {{"name", "mlp"}}},
               {"data", Json::object()},
               {"training", {{"epochs", 3}, {"batchSize", 512}, {"microBatches", micro_batches}, {"seed", 5}}},
               {"objective", {{"minThroughput", static_cast<int>(rng.Uniform(4'000, 30'000))}}}}}}));
    ASSERT_THAT(job, IsOk());
    ops::ResourcePool old_pool, new_pool;
    old_pool.name = "old";
    old_pool.usd_per_unit_hour = 0.1;
    new_pool.name = "new";
    new_pool.usd_per_unit_hour = 0.3;
    const model::PlanRequest asked = ops::BuildPlanRequest(*job, profile, {{&old_pool, 3}, {&new_pool, 2}}, {});
    // As it reaches the service.
    const auto request = model::ParsePlanRequest(model::PlanRequestJson(asked));
    ASSERT_THAT(request, IsOk());
    const auto result = sched::MakePlan(*request, {}, sched::BuiltinPlanners(), clock, {});
    ASSERT_THAT(result, IsOk());
    if (!result->execution_plan) continue;
    ++plans;
    if (result->execution_plan->stages.size() > 1) ++pipelines;
    const auto simulated = sched::SimulatePlan(*result->execution_plan, profile, {});
    ASSERT_THAT(simulated, IsOk());
    EXPECT_DOUBLE_EQ(result->execution_plan->estimate.simulated_throughput, simulated->throughput()) << round;
  }
  EXPECT_GE(plans, 12);
  EXPECT_GE(pipelines, 4);
}

}  // namespace
}  // namespace medley::cli
