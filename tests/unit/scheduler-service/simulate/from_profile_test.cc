// Durations from profiles, orders by rank, and the forms of a timeline.
#include "scheduler-service/simulate/from_profile.h"
#include "common/model/profile.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>

#include "common/base/testing/status_matchers.h"
#include "common/model/cluster.h"
#include "common/program/compile.h"
#include "scheduler-service/simulate/plan_simulation.h"
#include "scheduler-service/simulate/profile_quotas.h"
#include "scheduler-service/simulate/rank.h"
#include "scheduler-service/simulate/simulate.h"
#include "scheduler-service/simulate/timeline.h"
#include "tests/unit/common/program/sample_models.h"

namespace medley::sched {
namespace {

using base::IsOk;
using base::StatusIs;
using model::Phase;
using program::Program;
using testing::DoubleNear;
using testing::HasSubstr;

constexpr double kClose = 1e-9;

// Layers of c = 6 s of which half divides; x = 4 s, and y = 2 s for the one that has weights.
model::Profile SampleProfile(const std::vector<std::string>& pools, int batch = 8) {
  model::Profile profile;
  profile.profile_batch_size = batch;
  profile.model = {"two", {program::Dense("a"), program::Dense("loss", 0)}};
  for (model::Layer& layer : profile.model.layers) {
    for (const std::string& pool : pools) {
      model::LayerProfile times;
      times.resource_type = pool;
      times.compute_seconds = 6;
      times.compute_parallel = 0.5;
      times.sync_seconds = layer.weight_bytes > 0 ? 2 : 0;
      times.transfer_seconds = 4;
      layer.profiles.push_back(times);
    }
  }
  return profile;
}

double SecondsPerStep(const model::ExecutionPlan& plan, const model::Profile& profile, int samples) {
  const auto program = program::Compile(plan, profile.model);
  EXPECT_THAT(program, IsOk());
  const auto durations = DurationsFromProfile(*program, profile, samples);
  EXPECT_THAT(durations, IsOk());
  if (!program.ok() || !durations.ok()) return 0;
  const auto result = Simulate(*program, *durations, {.samples = samples});
  EXPECT_THAT(result, IsOk());
  return result.ok() ? result->seconds_per_step : 0;
}

// CT(k) of the cost model: 12 / 2 + 12 / 2 / k, then the reduction of 2 s; in any number of micro-batches.
TEST(FromProfileTest, OneStageTakesWhatTheCostModelSays) {
  const model::Profile profile = SampleProfile({"p0"});
  EXPECT_THAT(SecondsPerStep(program::StagesPlan({{2, 1}}, 1), profile, 8), DoubleNear(12, kClose));
  EXPECT_THAT(SecondsPerStep(program::StagesPlan({{2, 1}}, 4), profile, 8), DoubleNear(12, kClose));
  EXPECT_THAT(SecondsPerStep(program::StagesPlan({{2, 2}}, 1), profile, 8), DoubleNear(6 + 3 + 2, kClose));
  EXPECT_THAT(SecondsPerStep(program::StagesPlan({{2, 1}}, 1), profile, 16), DoubleNear(24, kClose));
}

// Without links, x is the value's time and the gradient's; with them, 8 x 40 bytes at 160 bytes/s.
TEST(FromProfileTest, MessagesTakeTransferSecondsOrTheLink) {
  model::Profile profile = SampleProfile({"p0", "p1"});
  const model::ExecutionPlan plan = program::StagesPlan({{1, 1}, {2, 1}}, 1);
  EXPECT_THAT(SecondsPerStep(plan, profile, 8), DoubleNear(12 + 4, kClose));
  profile.links = {{"p0", "p1", 0.5, 160}};
  EXPECT_THAT(SecondsPerStep(plan, profile, 8), DoubleNear(12 + 2 * 2.5, kClose));
}

TEST(FromProfileTest, ReductionsFollowTheLinkWhereItIsKnown) {
  model::Profile profile = SampleProfile({"p0"});
  profile.links = {{"p0", "p0", 0, 100}};
  EXPECT_THAT(SecondsPerStep(program::StagesPlan({{2, 2}}, 1), profile, 8), DoubleNear(6 + 3 + 2 * 2, kClose));
}

// Two stages that share a parameter of 40 bytes add its gradients once a step, over the link between them: a ring of
// two sends all of it once in each direction.
TEST(FromProfileTest, ASharedParameterCostsAMessageBetweenItsStages) {
  model::Profile profile = SampleProfile({"p0", "p1"});
  profile.links = {{"p0", "p1", 0, 160}, {"p1", "p0", 0, 160}};
  const model::ExecutionPlan plan = program::StagesPlan({{1, 1}, {2, 1}}, 1);
  const double apart = SecondsPerStep(plan, profile, 8);
  for (model::Layer& layer : profile.model.layers) layer.attributes["shared"] = "10 w\n";
  EXPECT_THAT(SecondsPerStep(plan, profile, 8), DoubleNear(apart + 40.0 / 160, kClose));
  const model::ExecutionPlan together = program::StagesPlan({{2, 1}}, 1);
  const double alone = SecondsPerStep(together, profile, 8);
  for (model::Layer& layer : profile.model.layers) layer.attributes.clear();
  EXPECT_THAT(SecondsPerStep(together, profile, 8), DoubleNear(alone, kClose)) << "one device sends nothing";
}

// Out of c = 6 s, 1 s is the processor's part of the reduction, which one replica does not have.
TEST(FromProfileTest, OnlyAReductionTakesTheProcessorTimeOfAReduction) {
  model::Profile profile = SampleProfile({"p0"});
  profile.model.layers[0].profiles[0].sync_processor_seconds = 1;
  EXPECT_THAT(SecondsPerStep(program::StagesPlan({{2, 1}}, 1), profile, 8), DoubleNear(12 - 1, kClose));
  EXPECT_THAT(SecondsPerStep(program::StagesPlan({{2, 2}}, 1), profile, 8), DoubleNear(6 + 3 - 1 + 2, kClose));
  profile.model.layers[0].profiles[0].sync_seconds = 0;
  EXPECT_THAT(SecondsPerStep(program::StagesPlan({{2, 2}}, 1), profile, 8), DoubleNear(6 + 3 - 1 + 1, kClose));
}

// The profiler measures two replicas. In a ring of four each sends and receives 1.5 times as much, and who adds for all
// three times.
TEST(FromProfileTest, ReductionsCostProcessorTimeByWhatIsSent) {
  const auto difference = [](model::AllreduceAlgorithm algorithm) {
    model::Profile profile = SampleProfile({"p0"});
    profile.model.layers[0].profiles[0].sync_seconds = 0;
    model::ExecutionPlan plan = program::StagesPlan({{2, 4}}, 1);
    for (model::OperationSync& sync : plan.stages[0].syncs) sync.sync.algorithm = algorithm;
    const double without = SecondsPerStep(plan, profile, 8);
    profile.model.layers[0].profiles[0].sync_processor_seconds = 1;  // of the layer's seconds
    return SecondsPerStep(plan, profile, 8) - without;
  };
  EXPECT_THAT(difference(model::AllreduceAlgorithm::kRing), DoubleNear(1.5 - 1, kClose));
  EXPECT_THAT(difference(model::AllreduceAlgorithm::kCentralized), DoubleNear(3 - 1, kClose));
}

// A quota of a half: bursts take 3 s of 6. Operations are longer than its period, so each takes twice its burst.
TEST(FromProfileTest, AQuotaHoldsUpLongOperations) {
  model::Profile profile = SampleProfile({"p0", "p1"});
  profile.links = {{"p0", "p0", 0, 1e12}, {"p1", "p1", 0, 1e12}};
  const model::ExecutionPlan one = program::StagesPlan({{2, 1}}, 1), two = program::StagesPlan({{1, 1}, {2, 1}}, 1);
  for (model::Layer& layer : profile.model.layers) {
    for (model::LayerProfile& times : layer.profiles) times.burst_seconds = 3;
  }
  EXPECT_THAT(SecondsPerStep(one, profile, 8), DoubleNear(12, 0.1));
  EXPECT_THAT(SecondsPerStep(two, profile, 8), DoubleNear(12, 0.1));
}

// For operations that are shorter than the period, those of a device that waits for others half of the time are not
// held up.
TEST(FromProfileTest, AQuotaHoldsUpOnlyWhoUsesItUp) {
  model::Profile profile = SampleProfile({"p0", "p1"});
  profile.links = {{"p0", "p0", 0, 1e12}, {"p1", "p1", 0, 1e12}};
  for (model::Layer& layer : profile.model.layers) {
    for (model::LayerProfile& times : layer.profiles) {
      times.compute_seconds = 0.0012;
      times.burst_seconds = 0.0006;
    }
  }
  EXPECT_THAT(SecondsPerStep(program::StagesPlan({{2, 1}}, 1), profile, 8), DoubleNear(0.0024, 0.0001));
  // Half of the pool's time: one device would need 0.0024 s for both operations, these need 0.0012 s.
  EXPECT_THAT(SecondsPerStep(program::StagesPlan({{1, 1}, {2, 1}}, 1), profile, 8), DoubleNear(0.0012, 0.0001));
}

// Half a core: bursts of 3 s take 6 s, whatever the period.
TEST(FromProfileTest, APeriodOfAnyLengthGrantsTheSamePart) {
  model::Profile profile = SampleProfile({"p0"});
  for (model::Layer& layer : profile.model.layers) layer.profiles[0].burst_seconds = 3;
  const model::ExecutionPlan plan = program::StagesPlan({{2, 1}}, 1);
  for (const double period : {0.01, 0.1, 4.0}) {
    const auto simulated = SimulatePlan(plan, profile, {.samples = 8, .quota_period_seconds = period});
    ASSERT_THAT(simulated, IsOk());
    EXPECT_THAT(simulated->simulation.seconds_per_step, DoubleNear(12, 0.25)) << period;
  }
}

TEST(FromProfileTest, ReductionsCostEachReplica) {
  const model::Profile profile = SampleProfile({"p0"});
  const auto program = program::Compile(program::StagesPlan({{2, 2}}, 1), profile.model);
  ASSERT_THAT(program, IsOk());
  auto durations = DurationsFromProfile(*program, profile, 8);
  ASSERT_THAT(durations, IsOk());
  durations->reduction_cpu_seconds[0].pop_back();
  EXPECT_THAT(CheckDurations(*program, *durations),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("the reduction_cpu_seconds of a block")));
  durations->reduction_cpu_seconds[0].push_back(-1);
  EXPECT_THAT(CheckDurations(*program, *durations),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("reduction_cpu_seconds[1] is negative")));
}

// For each layer, four micro-batches take 6 s and one takes 4.5 s: each costs 0.5 s in itself.
TEST(FromProfileTest, MicroBatchesCostTime) {
  model::Profile profile = SampleProfile({"p0", "p1"});
  profile.micro_batches = 4;
  for (model::Layer& layer : profile.model.layers) {
    for (model::LayerProfile& times : layer.profiles) times.undivided_seconds = 4.5;
  }
  EXPECT_THAT(SecondsPerStep(program::StagesPlan({{2, 1}}, 4), profile, 8), DoubleNear(9, kClose))
      << "a plan of one stage has one micro-batch";
  for (const int micros : {2, 4, 8}) {
    const auto program = program::Compile(program::StagesPlan({{1, 1}, {2, 1}}, micros), profile.model);
    ASSERT_THAT(program, IsOk());
    const auto durations = DurationsFromProfile(*program, profile, 8);
    ASSERT_THAT(durations, IsOk());
    const Durations::Passes& passes = durations->passes[0][0];
    EXPECT_THAT(micros * (passes.forward.At(8 / micros) + passes.backward.At(8 / micros)),
                DoubleNear(6 + 0.5 * (micros - 4), kClose))
        << micros;
  }
}

// A half of c = 6 s divides, and two thirds of the undivided 4.5 s. So four micro-batches cost each of two replicas
// 4.5 - 3 = 1.5 s, as they cost one unit. Where eight ninths of the undivided batch divide, it is 4.5 - 2.5 = 2 s.
TEST(FromProfileTest, MicroBatchesOfASmallShareCostWhatTheyWereMeasuredToCost) {
  model::Profile profile = SampleProfile({"p0"});
  profile.micro_batches = 4;
  for (const auto& [parallel, seconds] : {std::pair(0.0, 3.0), {2.0 / 3, 3.0}, {8.0 / 9, 2.5}}) {
    for (model::Layer& layer : profile.model.layers) {
      layer.profiles[0].undivided_seconds = 4.5;
      layer.profiles[0].undivided_parallel = parallel;
      layer.profiles[0].sync_seconds = 0;
    }
    EXPECT_THAT(SecondsPerStep(program::StagesPlan({{2, 1}}, 4), profile, 8), DoubleNear(9, kClose)) << parallel;
    EXPECT_THAT(SecondsPerStep(program::StagesPlan({{2, 2}}, 4), profile, 8), DoubleNear(2 * seconds, kClose))
        << parallel;
  }
}

// An eighth of c = 6 s is the update, once a step. A half of c, that is 4 of the 7 eighths that remain, are the forward
// passes.
TEST(FromProfileTest, PassesAndUpdateTakeTheirMeasuredParts) {
  model::Profile profile = SampleProfile({"p0", "p1"});
  for (model::Layer& layer : profile.model.layers) {
    for (model::LayerProfile& times : layer.profiles) {
      times.forward_part = 0.5;
      times.update_part = 0.125;
    }
  }
  const auto program = program::Compile(program::StagesPlan({{1, 1}, {2, 1}}, 4), profile.model);
  ASSERT_THAT(program, IsOk());
  const auto durations = DurationsFromProfile(*program, profile, 8);
  ASSERT_THAT(durations, IsOk());
  const auto dense = std::ranges::find_if(program->blocks, &program::Block::dense);
  ASSERT_NE(dense, program->blocks.end());
  const Durations::Passes& passes = durations->passes[static_cast<size_t>(dense - program->blocks.begin())][0];
  EXPECT_THAT(passes.update, DoubleNear(0.75, kClose));
  EXPECT_THAT(4 * passes.forward.At(2), DoubleNear(5.25 * 4 / 7, kClose));
  EXPECT_THAT(4 * passes.backward.At(2), DoubleNear(5.25 * 3 / 7, kClose));
}

// Without measured parts, the forward pass is a third and the update takes no time of its own.
TEST(FromProfileTest, WithoutMeasuredPartsTheForwardPassIsAThird) {
  const model::Profile profile = SampleProfile({"p0"});
  const auto program = program::Compile(program::StagesPlan({{2, 1}}, 1), profile.model);
  ASSERT_THAT(program, IsOk());
  const auto durations = DurationsFromProfile(*program, profile, 8);
  ASSERT_THAT(durations, IsOk());
  const Durations::Passes& passes = durations->passes[0][0];
  EXPECT_EQ(passes.update, 0);
  EXPECT_THAT(2 * passes.forward.At(8), DoubleNear(passes.backward.At(8), kClose));
}

// A message of 8 x 40 bytes costs 0.1 + 320 x 0.001 s at each end.
TEST(FromProfileTest, MessagesCostProcessorTimeAtBothEnds) {
  model::Profile profile = SampleProfile({"p0", "p1"});
  profile.links = {{"p0", "p0", 0, 1e12, 0.1, 0.001}, {"p1", "p1", 0, 1e12, 0.2, 0}};
  const model::ExecutionPlan plan = program::StagesPlan({{1, 1}, {2, 1}}, 1);
  EXPECT_THAT(SecondsPerStep(plan, profile, 8), DoubleNear(12 + 0.2 + 0.42, kClose))
      << "receiving, which is waited for";
}

// Each device has 8 bytes of parameters and as many of gradients, and passes through them twice for two messages.
TEST(FromProfileTest, MessagesCostLessWithLittleComputationInBetween) {
  model::Profile profile = SampleProfile({"p0", "p1"});
  for (model::Layer& layer : profile.model.layers) layer.weight_bytes = 8;
  profile.links = {{"p0", "p0", 0, 1e12, 0.1, 0, 0.05, 32}, {"p1", "p1", 0, 1e12, 0.2, 0, 0.1, 8}};
  const auto program = program::Compile(program::StagesPlan({{1, 1}, {2, 1}}, 2), profile.model);
  ASSERT_THAT(program, IsOk());
  const auto durations = DurationsFromProfile(*program, profile, 8);
  ASSERT_THAT(durations, IsOk());
  ASSERT_EQ(durations->message_cpu.size(), 2U);
  EXPECT_THAT(durations->message_cpu[0].per_message, DoubleNear(0.075, kClose)) << "16 of 32 bytes";
  EXPECT_THAT(durations->message_cpu[1].per_message, DoubleNear(0.2, kClose)) << "no more than amid computation";
  // Messages of each micro-batch to two replicas are twice as many.
  const auto wider = program::Compile(program::StagesPlan({{1, 1}, {2, 2}}, 2), profile.model);
  ASSERT_THAT(wider, IsOk());
  const auto shorter = DurationsFromProfile(*wider, profile, 8);
  ASSERT_THAT(shorter, IsOk());
  EXPECT_THAT(shorter->message_cpu[0].per_message, DoubleNear(0.0625, kClose));
}

// The same over the links of a cluster, which say nothing of processors.
TEST(FromProfileTest, MessagesBetweenDevicesOfAClusterCostProcessorTime) {
  model::Profile profile = SampleProfile({"p0", "p1"});
  profile.links = {{"p0", "p0", 9, 1, 0.1, 0.001}, {"p1", "p1", 9, 1, 0.2, 0}};
  const model::ExecutionPlan plan = program::StagesPlan({{1, 1}, {2, 1}}, 1);
  const auto program = program::Compile(plan, profile.model);
  ASSERT_THAT(program, IsOk());
  model::Cluster cluster{{}, {{"*", "*", 0, 1e12}}};
  for (const program::Device& device : program->devices) cluster.devices.push_back({device.id, device.pool, "", ""});
  const auto links = ClusterLinks::Make(cluster);
  ASSERT_THAT(links, IsOk());
  const DeviceLinks view = links->View();
  const auto simulated = SimulatePlan(plan, profile, {.samples = 8, .links = &view});
  ASSERT_THAT(simulated, IsOk());
  EXPECT_THAT(simulated->simulation.seconds_per_step, DoubleNear(12 + 0.2 + 0.42, kClose));
}

TEST(FromProfileTest, PoolsThatWereMeasuredApartHaveTheSlowerLinkOfBoth) {
  model::Profile profile = SampleProfile({"p0", "p1"});
  profile.links = {{"p0", "p0", 0.5, 320}, {"p1", "p1", 0.25, 160}};
  EXPECT_THAT(SecondsPerStep(program::StagesPlan({{1, 1}, {2, 1}}, 1), profile, 8), DoubleNear(12 + 2 * 2.5, kClose));
}

// Out at 160 bytes/s and back at 16,000, of 8 x 40 bytes each way: a card does not slow down what its link can carry.
TEST(FromProfileTest, ACardCarriesItsFastestLinkInEitherDirection) {
  model::Profile profile = SampleProfile({"p0", "p1"});
  profile.links = {{"p0", "p1", 0, 160}, {"p1", "p0", 0, 16000}};
  const model::ExecutionPlan plan = program::StagesPlan({{1, 1}, {2, 1}}, 1);
  EXPECT_THAT(SecondsPerStep(plan, profile, 8), DoubleNear(12 + 2 + 0.02, kClose));
  std::ranges::reverse(profile.links);
  EXPECT_THAT(SecondsPerStep(plan, profile, 8), DoubleNear(12 + 2 + 0.02, kClose));
}

// Links of both directions and of one, two measurements of one link, one of which knows no processor time, and a link
// that only says what messages cost.
TEST(FromProfileTest, TheOrderOfLinksDoesNotMatter) {
  model::Profile profile = SampleProfile({"p0", "p1", "p2"});
  profile.model.layers.insert(profile.model.layers.begin() + 1, profile.model.layers.front());
  profile.model.layers[1].name = "b";
  profile.links = {{"p0", "p0", 0.1, 300, 0.05, 0}, {"p0", "p0", 0.2, 200},
                   {"p0", "p1", 0.3, 160},          {"p1", "p0", 0.4, 16000},
                   {"p2", "p1", 0.5, 90},           {"p2", "p2", 0.6, 70, 0.01, 0.001, 0.005, 1e3},
                   {"p1", "p1", 0, 0, 0.02, 0.0005}};
  const model::ExecutionPlan plan = program::StagesPlan({{1, 2}, {2, 2}, {3, 1}}, 2);
  const double seconds = SecondsPerStep(plan, profile, 8);
  const auto by_ends = [](const model::Link& a, const model::Link& b) {
    return std::tie(a.from, a.to, a.latency_seconds) < std::tie(b.from, b.to, b.latency_seconds);
  };
  std::ranges::sort(profile.links, by_ends);
  int orders = 0;
  do {
    ASSERT_EQ(SecondsPerStep(plan, profile, 8), seconds) << orders;
    ++orders;
  } while (std::ranges::next_permutation(profile.links, by_ends).found);
  EXPECT_EQ(orders, 5040);
}

// One server: its processor time of 8 s takes as long as its unit has cores.
TEST(FromProfileTest, AServerComputesWithTheCoresOfItsUnit) {
  model::Profile profile = SampleProfile({"p0", "cpu"});
  profile.model.layers[0].sparse = true;
  profile.model.layers[0].profiles[0].server_seconds = 8;
  model::ExecutionPlan plan = program::StagesPlan({{2, 1}}, 1);
  plan.stages[0].syncs = {{{{0, 1}}, {.kind = model::SyncKind::kParameterServer}}, {{{1, 2}}, program::Allreduce()}};
  plan.servers = model::Servers{"cpu", 1};
  const auto update_with = [&](std::vector<model::UnitCpus> units) {
    profile.units = std::move(units);
    const auto program = program::Compile(plan, profile.model);
    EXPECT_THAT(program, IsOk());
    const auto durations = DurationsFromProfile(*program, profile, 8);
    EXPECT_THAT(durations, IsOk());
    return durations->rows.at(0).update;
  };
  EXPECT_THAT(update_with({}), DoubleNear(8, kClose)) << "one core where nothing is known";
  EXPECT_THAT(update_with({{"cpu", 0.2, 0.1}}), DoubleNear(40, kClose));
  EXPECT_THAT(update_with({{"cpu", 4, 0.1}}), DoubleNear(2, kClose));
  EXPECT_THAT(update_with({{"p0", 4, 0.1}}), DoubleNear(8, kClose)) << "those of another pool";
  plan.servers->units = 2;
  EXPECT_THAT(update_with({{"cpu", 4, 0.1}}), DoubleNear(1, kClose));
}

// Pulling and pushing rows takes 1 s of the processor of c = 6 s, which computation lacks while they move.
TEST(FromProfileTest, RowsTakeProcessorTimeFromComputation) {
  model::Profile profile = SampleProfile({"p0", "cpu"});
  profile.model.layers[0].sparse = true;
  model::LayerProfile& table = profile.model.layers[0].profiles[0];
  table.server_seconds = 1e-3;
  table.sync_seconds = 2;
  table.sync_processor_seconds = 1;
  table.comm_parallel = 1;
  for (const int units : {1, 2}) {
    model::ExecutionPlan plan = program::StagesPlan({{2, units}}, 1);
    plan.stages[0].syncs = {{{{0, 1}}, {.kind = model::SyncKind::kParameterServer}}, {{{1, 2}}, program::Allreduce()}};
    plan.servers = model::Servers{"cpu", 1};
    const auto program = program::Compile(plan, profile.model);
    ASSERT_THAT(program, IsOk());
    const auto durations = DurationsFromProfile(*program, profile, 8);
    ASSERT_THAT(durations, IsOk());
    EXPECT_THAT(durations->rows.at(0).processor, DoubleNear(0.5 / units, kClose)) << "one pull, or one push";
  }
}

// Single runs seem to take 0.9 of the time that the limit lets them have, because they are longer than its period.
TEST(FromProfileTest, ALimitBelowACoreIsTheQuota) {
  model::Profile profile = SampleProfile({"p0"});
  for (model::Layer& layer : profile.model.layers) layer.profiles[0].burst_seconds = 5.4;
  EXPECT_THAT(QuotaParts(profile).at("p0"), DoubleNear(0.9, kClose));
  profile.units = {{"p0", 0.4, 0.01}};
  EXPECT_THAT(QuotaParts(profile).at("p0"), DoubleNear(0.4, kClose));
  const auto program = program::Compile(program::StagesPlan({{2, 1}}, 1), profile.model);
  ASSERT_THAT(program, IsOk());
  const auto durations = DurationsFromProfile(*program, profile, 8);
  ASSERT_THAT(durations, IsOk());
  EXPECT_THAT(durations->quotas[0].seconds, DoubleNear(0.004, kClose));
  EXPECT_THAT(durations->quotas[0].period, DoubleNear(0.01, kClose));
  const Durations::Passes& passes = durations->passes[0][0];
  EXPECT_THAT(passes.forward.At(8) + passes.backward.At(8) + passes.update, DoubleNear(0.4 * 12, kClose));
  profile.units[0] = {"p0", 4, 0};
  EXPECT_THAT(QuotaParts(profile).at("p0"), DoubleNear(0.9, kClose)) << "several cores hold up what several threads do";
  EXPECT_EQ(DurationsFromProfile(*program, profile, 8)->cores[0], 4);
}

TEST(FromProfileTest, NamesWhatIsMissing) {
  const model::Profile profile = SampleProfile({"p0"});
  const auto program = program::Compile(program::StagesPlan({{1, 1}, {2, 1}}, 1), profile.model);
  ASSERT_THAT(program, IsOk());
  EXPECT_THAT(DurationsFromProfile(*program, profile, 8),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'loss' has no profile for pool 'p1'")));
  model::Profile empty = SampleProfile({"p0", "p1"}, 0);
  EXPECT_THAT(DurationsFromProfile(*program, empty, 8),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("profileBatchSize")));
}

// Two branches from one operation on their own devices; the long one goes first on the device that sends to both.
TEST(RankOrderTest, TheLongestPathGoesFirst) {
  model::Profile profile;
  profile.profile_batch_size = 1;
  profile.model = program::TowersModel();
  const double seconds[] = {1, 1, 9, 9, 1, 1};
  for (size_t i = 0; i < profile.model.layers.size(); ++i) {
    profile.model.layers[i].profiles = {{.resource_type = "p0", .compute_seconds = 3 * seconds[i]}};
  }
  const model::ExecutionPlan plan = program::StagesPlan({{6, 1}}, 1);
  const auto order = RankOrder(plan, profile, 1);
  ASSERT_THAT(order, IsOk());
  ASSERT_EQ(order->size(), 18u);
  EXPECT_EQ((*order)[0], (model::OrderEntry{2, Phase::kForward}));
  EXPECT_EQ((*order)[1], (model::OrderEntry{3, Phase::kForward}));
  model::ExecutionPlan ordered = plan;
  ordered.order = *order;
  EXPECT_THAT(program::Compile(ordered, profile.model), IsOk());
}

// Two towers, each operation on a device of its own: that whose first output passes a slow link goes first.
TEST(RankOrderTest, LinksOfDevicesCount) {
  model::Profile profile;
  profile.profile_batch_size = 1;
  profile.model = program::TowersModel();
  model::ExecutionPlan plan;
  std::map<std::string, int> index;
  for (model::Layer& layer : profile.model.layers) {
    layer.output_bytes = 1e6;
    layer.profiles = {{.resource_type = "p0", .compute_seconds = 1}};
    const int i = static_cast<int>(plan.devices.size());
    plan.devices.push_back({"d" + std::to_string(i), "p0", "", ""});
    plan.placements.push_back({{{i, i + 1}}, {{plan.devices.back().id, 1}}, {}});
    index[plan.devices.back().id] = i;
  }
  for (const int first_of_tower : {0, 2}) {
    const std::string slow = "d" + std::to_string(first_of_tower);
    const auto table = model::LinkTable::Make({plan.devices, {{"*", "*", 1e-4, 1e9}, {slow, "*", 1e-4, 1e5}}});
    ASSERT_THAT(table, IsOk());
    const DeviceLinks links{*table, index};
    const auto order = RankOrder(plan, profile, 1, &links);
    ASSERT_THAT(order, IsOk());
    EXPECT_EQ((*order)[0], (model::OrderEntry{first_of_tower, Phase::kForward}));
    const std::map<std::string, int> none;
    const DeviceLinks unknown{*table, none};
    EXPECT_THAT(RankOrder(plan, profile, 1, &unknown),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("device 'd0' has no links")));
  }
}

TEST(TimelineTest, TraceIsJsonAndThePictureShowsBothThemes) {
  const model::Profile profile = SampleProfile({"p0", "p1"});
  const auto program = program::Compile(program::StagesPlan({{1, 1}, {2, 1}}, 2), profile.model);
  ASSERT_THAT(program, IsOk());
  const auto durations = DurationsFromProfile(*program, profile, 8);
  ASSERT_THAT(durations, IsOk());
  const auto result = Simulate(*program, *durations, {.samples = 8, .steps = 2, .max_spans = 1000});
  ASSERT_THAT(result, IsOk());
  const std::vector<std::string> names = {"a \"quoted\" <name>", "loss"};
  const auto trace = nlohmann::json::parse(ChromeTrace(*program, *result, names), nullptr, false);
  ASSERT_FALSE(trace.is_discarded());
  int spans = 0;
  std::map<std::string, int> categories;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    ++spans;
    ++categories[event["cat"]];
    const bool forward = event["cat"] == "forward" && event["pid"] == 0;
    if (forward || event["cat"] == "messages") {
      EXPECT_EQ(event["args"]["operations"], "a \"quoted\" <name>");
    }
    EXPECT_TRUE(event["args"].contains("microBatch"));
  }
  EXPECT_EQ(categories, (std::map<std::string, int>{{"forward", 8}, {"backward", 8}, {"messages", 8}}));
  EXPECT_EQ(spans, 2 * (8 + 4));  // two steps of 8 passes and 4 messages; receiving takes no time
  const std::string svg = TimelineSvg(*program, *result, names);
  EXPECT_THAT(svg, HasSubstr("prefers-color-scheme:dark"));
  EXPECT_THAT(svg, HasSubstr("F a &quot;quoted&quot; &lt;name&gt; m0"));
  EXPECT_THAT(svg, HasSubstr(">p1/0</text>"));
}

TEST(FromProfileTest, ManyPoolsAreRefused) {
  std::vector<std::string> pools;
  model::ExecutionPlan plan = program::StagesPlan({{2, 1}}, 1);
  plan.stages[0].groups.clear();
  for (int i = 0; i < 1025; ++i) {
    pools.push_back("p" + std::to_string(i));
    plan.stages[0].groups.push_back({pools.back(), 1, 1.0 / 1025});
  }
  const model::Profile profile = SampleProfile(pools);
  const auto program = program::Compile(plan, profile.model);
  ASSERT_THAT(program, IsOk());
  EXPECT_THAT(DurationsFromProfile(*program, profile, 8),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("1025 pools; at most 1024 are possible")));
}

}  // namespace
}  // namespace medley::sched
