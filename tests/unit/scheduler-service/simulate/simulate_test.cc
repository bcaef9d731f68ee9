// Timelines that were computed by hand.
#include "scheduler-service/simulate/simulate.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "common/base/testing/status_matchers.h"
#include "common/program/compile.h"
#include "common/program/text.h"
#include "scheduler-service/simulate/agreeing_part.h"
#include "scheduler-service/simulate/network.h"
#include "scheduler-service/simulate/quotas.h"
#include "tests/unit/common/program/sample_models.h"
#include "tests/unit/scheduler-service/simulate/one_and_two.h"

namespace medley::sched {
namespace {

using base::IsOk;
using base::StatusIs;
using model::ScheduleKind;
using program::Program;
using testing::DoubleNear;
using testing::HasSubstr;

model::Model TwoLayers() { return {"two", {program::Dense("a"), program::Dense("loss", 0)}}; }

Program Compiled(const model::ExecutionPlan& plan, const model::Model& model) {
  auto compiled = program::Compile(plan, model);
  EXPECT_THAT(compiled, IsOk());
  return compiled.ok() ? *std::move(compiled) : Program{};
}

Simulation Simulated(const Program& program, const Durations& durations, int steps, int samples) {
  auto result = Simulate(program, durations, {.samples = samples, .steps = steps, .max_spans = 1000});
  EXPECT_THAT(result, IsOk());
  return result.ok() ? *std::move(result) : Simulation{};
}

// "F a m0 0-1" of the instructions of one step and list kind on a device, in the order of their ends; those without
// length are left out.
std::vector<std::string> Lines(const Program& program, const Simulation& simulation, int device, int step) {
  std::vector<std::string> lines;
  for (const Span& span : simulation.spans) {
    const program::Instruction& instruction = program.instructions[static_cast<size_t>(span.instruction)];
    if (instruction.device != device || span.step != step || span.end == span.start) continue;
    lines.push_back(fmt::format("{} {:g}-{:g}", program::Text(program, instruction, {"a", "b"}), span.start, span.end));
  }
  return lines;
}

// Two stages, three micro-batches. A step: F0 at 0-1, then stage 1 has F0 1-2 B0 2-4, F1 4-5 ...; stage 0 is one
// forward pass ahead, so that its B0 is at 4-6.
TEST(SimulateTest, Sync1F1B) {
  const Program program = Compiled(program::StagesPlan({{1, 1}, {2, 1}}, 3), TwoLayers());
  const Simulation simulation = Simulated(program, OneAndTwo(program), 8, 3);
  EXPECT_THAT(Lines(program, simulation, 0, 0), testing::ElementsAre("F a m0 0-1", "F a m1 1-2", "B a m0 4-6",
                                                                     "F a m2 6-7", "B a m1 7-9", "B a m2 10-12"));
  EXPECT_THAT(Lines(program, simulation, 1, 0), testing::ElementsAre("F b m0 1-2", "B b m0 2-4", "F b m1 4-5",
                                                                     "B b m1 5-7", "F b m2 7-8", "B b m2 8-10"));
  EXPECT_THAT(simulation.seconds_per_step, DoubleNear(12, kNear));
  EXPECT_THAT(simulation.total_seconds, DoubleNear(96, kNear));
  EXPECT_THAT(simulation.busy[0], DoubleNear(72, kNear));
}

TEST(SimulateTest, GPipe) {
  const Program program = Compiled(program::StagesPlan({{1, 1}, {2, 1}}, 3, ScheduleKind::kGpipe), TwoLayers());
  const Simulation simulation = Simulated(program, OneAndTwo(program), 8, 3);
  EXPECT_THAT(Lines(program, simulation, 0, 0), testing::ElementsAre("F a m0 0-1", "F a m1 1-2", "F a m2 2-3",
                                                                     "B a m0 6-8", "B a m1 8-10", "B a m2 10-12"));
  EXPECT_THAT(Lines(program, simulation, 1, 0), testing::ElementsAre("F b m0 1-2", "F b m1 2-3", "F b m2 3-4",
                                                                     "B b m0 4-6", "B b m1 6-8", "B b m2 8-10"));
  EXPECT_THAT(simulation.seconds_per_step, DoubleNear(12, kNear));
}

// Without drain, each of two equal stages works all the time: 3 s for each micro-batch.
TEST(SimulateTest, Async1F1BKeepsBothStagesBusy) {
  for (const int micros : {1, 3}) {
    const Program program =
        Compiled(program::StagesPlan({{1, 1}, {2, 1}}, micros, ScheduleKind::kAsync1F1B), TwoLayers());
    const Simulation simulation = Simulated(program, OneAndTwo(program), 12, micros);
    EXPECT_THAT(simulation.seconds_per_step, DoubleNear(3 * micros, kNear));
  }
}

// A message of 40 bytes takes 4 s at 10 bytes/s and arrives 0.5 s later. The next may leave meanwhile.
TEST(SimulateTest, MessagesTakeBytesOverBandwidthAndLatency) {
  const Program program = Compiled(program::StagesPlan({{1, 1}, {2, 1}}, 2), TwoLayers());
  Durations durations = OneAndTwo(program);
  durations.links[0] = {0.5, 10};
  const Simulation simulation = Simulated(program, durations, 1, 2);
  EXPECT_THAT(Lines(program, simulation, 0, 0),
              testing::ElementsAre("F a m0 0-1", "F a m1 1-2", "Send a m0 1-5", "Send a m1 5-9",
                                   "Receive da m0 12.5-13", "B a m0 13-15", "Receive da m1 16.5-17", "B a m1 17-19"));
  EXPECT_THAT(
      Lines(program, simulation, 1, 0),
      testing::ElementsAre("Receive a m0 5-5.5", "F b m0 5.5-6.5", "B b m0 6.5-8.5", "Receive a m1 9-9.5",
                           "F b m1 9.5-10.5", "Send da m0 8.5-12.5", "B b m1 10.5-12.5", "Send da m1 12.5-16.5"));
}

// Two replicas in two blocks: the reduction of the upper one (3 s) hides behind the backward pass of the lower one
// (2 s) except for 1 s, then comes the reduction of the lower one.
TEST(SimulateTest, ReductionsOverlapTheBackwardPass) {
  const model::Model model{"three", {program::Dense("a"), program::Dense("b"), program::Dense("loss", 0)}};
  model::ExecutionPlan plan = program::StagesPlan({{3, 2}}, 1);
  plan.schedule.bucket_bytes = 400;
  const Program program = Compiled(plan, model);
  ASSERT_EQ(program.blocks.size(), 2u);
  Durations durations = OneAndTwo(program);
  durations.reductions = {1, 3};
  const Simulation simulation = Simulated(program, durations, 10, 2);
  // F 0-1, 1-2; B of the upper block 2-4, reduction 4-7; B of the lower 4-6, reduction 7-8.
  EXPECT_THAT(simulation.step_end[0], DoubleNear(8, kNear));
  EXPECT_THAT(simulation.seconds_per_step, DoubleNear(8, kNear));
}

// A collective waits for its slowest member.
TEST(SimulateTest, ReductionsWaitForTheSlowestReplica) {
  const Program program = Compiled(program::StagesPlan({{2, 2}}, 1), TwoLayers());
  Durations durations = OneAndTwo(program);
  durations.passes[0][1].backward = {5, 0};
  durations.reductions = {1};
  EXPECT_THAT(Simulated(program, durations, 1, 2).total_seconds, DoubleNear(1 + 5 + 1, kNear));
}

// Two devices of one machine send to two others: they share the card.
// Replicas that differ average for 4 s in one step of four; in the others nobody waits for the slower one.
TEST(SimulateTest, AveragesOnlyInStepsThatAgree) {
  model::ExecutionPlan plan = program::StagesPlan({{2, 2}}, 1);
  model::Sync sync = program::Allreduce();
  sync.mode = model::SyncMode::kPercentage;
  sync.fraction = 0.25;
  plan.stages[0].syncs = {{{{0, 2}}, sync}};
  const Program percentage = Compiled(plan, TwoLayers());
  Durations durations = OneAndTwo(percentage);
  durations.averages.assign(percentage.blocks.size(), 4);
  EXPECT_DOUBLE_EQ(AgreeingPart(percentage, durations, 2), 0.25);
  EXPECT_THAT(Simulated(percentage, durations, 40, 2).total_seconds, DoubleNear(40 * 3 + 10 * 4, kNear));
  plan.stages[0].syncs[0].sync.mode = model::SyncMode::kNone;
  const Program none = Compiled(plan, TwoLayers());
  EXPECT_EQ(AgreeingPart(none, durations, 2), 0);
  durations.passes[0][1] = {{2, 0}, {4, 0}, 0};  // replica 1 takes twice as long
  const Simulation alone = Simulated(none, durations, 40, 2);
  EXPECT_THAT(alone.total_seconds, DoubleNear(40 * 6, kNear));
  EXPECT_THAT(alone.busy[0], DoubleNear(40 * 3, kNear));
  plan.stages[0].syncs[0].sync.mode = model::SyncMode::kFlexible;
  plan.stages[0].syncs[0].sync.target_ratio = 0.1;
  const Program flexible = Compiled(plan, TwoLayers());
  EXPECT_THAT(AgreeingPart(flexible, durations, 2), DoubleNear(0.1 * 4.5 / 4, kNear));  // of a mean of 4.5 s
}

TEST(SimulateTest, MessagesShareANetworkCard) {
  model::ExecutionPlan plan;
  plan.devices = {{"a0", "p", "m0", ""}, {"a1", "p", "m0", ""}, {"b0", "p", "", ""}, {"b1", "p", "", ""}};
  plan.placements = {{{{0, 1}}, {{"a0", 0.5}, {"a1", 0.5}}, program::Allreduce()},
                     {{{1, 2}}, {{"b0", 0.5}, {"b1", 0.5}}, {}}};
  plan.schedule = {ScheduleKind::kSync1F1B, 1};
  const Program program = Compiled(plan, TwoLayers());
  Durations durations = OneAndTwo(program);
  durations.links[0] = {0, 10};
  // 40 bytes: 4 s alone; there and back, with 1 + 1 + 2 + 2 s of passes.
  EXPECT_THAT(Simulated(program, durations, 1, 2).total_seconds, DoubleNear(6 + 8, kNear));
  durations.card_bytes_per_second[static_cast<size_t>(durations.machine[0])] = 10;
  EXPECT_THAT(Simulated(program, durations, 1, 2).total_seconds, DoubleNear(6 + 16, kNear));
  durations.card_bytes_per_second[static_cast<size_t>(durations.machine[0])] = 20;
  EXPECT_THAT(Simulated(program, durations, 1, 2).total_seconds, DoubleNear(6 + 8, kNear));
}

// The second message joins when the first has 20 of 40 bytes left; each then goes at half the rate, and the rest of the
// second alone at the full one.
TEST(NetworkTest, SharesOverTime) {
  Network network({10, 0, 0}, 2);
  std::vector<Network::Change> changes;
  network.Start(0, 0, 1, 40, 0, 0, changes);
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_THAT(changes[0].end, DoubleNear(4, kNear));
  network.Start(1, 0, 2, 40, 0, 2, changes);
  ASSERT_EQ(changes.size(), 3u);
  EXPECT_EQ(changes[1].id, 0);
  EXPECT_THAT(changes[1].end, DoubleNear(6, kNear));
  EXPECT_EQ(changes[2].id, 1);
  EXPECT_THAT(changes[2].end, DoubleNear(10, kNear));
  EXPECT_FALSE(network.End(0, changes[0].version, 4, changes)) << "an end that was put off";
  ASSERT_TRUE(network.End(0, changes[1].version, 6, changes));
  ASSERT_EQ(changes.size(), 4u);
  EXPECT_EQ(changes[3].id, 1);
  EXPECT_THAT(changes[3].end, DoubleNear(8, kNear));
}

// A device with two cores: a message of 1 s of processor time puts the computation that runs off by 0.5 s.
// The first can use only 2 of the 10 bytes/s, so the other gets 8.
TEST(NetworkTest, ASlowLinkLeavesTheRestToOthers) {
  Network network({10, 0, 0}, 3);
  std::vector<Network::Change> changes;
  network.Start(0, 0, 1, 40, 2, 0, changes);
  network.Start(1, 0, 2, 40, 0, 0, changes);
  EXPECT_EQ(changes.back().id, 1);
  EXPECT_THAT(changes.back().end, DoubleNear(5, kNear));
  network.Start(2, 0, 2, 40, 3, 0, changes);  // 2, 3 and 5
  EXPECT_THAT(changes.back().end, DoubleNear(40.0 / 3, kNear));
  network.End(0, changes.front().version, 20, changes);
  EXPECT_EQ(changes.back().id, 1);  // 3 and 7
}

// Two blocks on two devices, which may serve the gradients of one each. Forward passes end at 2, backward passes at 4
// and 6; each reduction takes 10 s alone.
class ServersTest : public testing::Test {
 protected:
  Program Served(const std::string& lower, const std::string& upper) {
    model::ExecutionPlan plan;
    plan.devices = {{"d0", "p", "", ""}, {"d1", "p", "", ""}};
    model::Sync sync{.kind = model::SyncKind::kAllreduce, .algorithm = model::AllreduceAlgorithm::kCentralized};
    const std::vector<model::Replica> both = {{"d0", 0.5}, {"d1", 0.5}};
    sync.root = lower;
    plan.placements.push_back({{{0, 1}}, both, sync});
    sync.root = upper;
    plan.placements.push_back({{{1, 3}}, both, sync});
    plan.schedule = {ScheduleKind::kSync1F1B, 1};
    plan.schedule.bucket_bytes = 1;
    return Compiled(plan, {"three", {program::Dense("a"), program::Dense("b"), program::Dense("loss", 0)}});
  }
  static Durations TenSeconds(const Program& program) {
    Durations durations = OneAndTwo(program);
    durations.reductions = {10, 10};
    return durations;
  }
};

TEST_F(ServersTest, DifferentOnesAddAtTheSameTime) {
  const Program same = Served("d0", "d0"), different = Served("d0", "d1");
  ASSERT_EQ(same.blocks.size(), 2u);
  EXPECT_THAT(Simulated(same, TenSeconds(same), 1, 2).total_seconds, DoubleNear(24, kNear));
  EXPECT_THAT(Simulated(different, TenSeconds(different), 1, 2).total_seconds, DoubleNear(16, kNear));
  EXPECT_THAT(program::Text(different, std::vector<std::string>{"a", "b"}), HasSubstr("served by d1: AllReduce b"));
}

// Each reduction sends 100 bytes from each device, 10 in a second while it is alone.
TEST_F(ServersTest, ShareNetworkCards) {
  const Program program = Served("d0", "d1");
  Durations durations = TenSeconds(program);
  durations.reduction_bytes = {100, 100};
  durations.card_bytes_per_second = {20, 20};
  EXPECT_THAT(Simulated(program, durations, 1, 2).total_seconds, DoubleNear(16, kNear));
  durations.card_bytes_per_second = {10, 20};  // at 6 the first has 80 bytes left and goes at half its rate
  const Simulation shared = Simulated(program, durations, 1, 2);
  EXPECT_THAT(shared.total_seconds, DoubleNear(24, kNear));
  EXPECT_THAT(Lines(program, shared, 0, 0), testing::Contains("AllReduce b..2 4-22"));
}

TEST(SimulateTest, MessagesTakeProcessorTime) {
  const Program program = Compiled(program::StagesPlan({{1, 1}, {2, 1}}, 2), TwoLayers());
  Durations durations = OneAndTwo(program);
  durations.cores = {2, 0};
  durations.message_cpu = {{1, 0}, {}};
  const Simulation simulation = Simulated(program, durations, 1, 2);
  // m0 is sent at 1, while F m1 begins; the gradients arrive at 4 and 7, and are received before they are used.
  EXPECT_THAT(Lines(program, simulation, 0, 0),
              testing::ElementsAre("F a m0 0-1", "F a m1 1-2.5", "Receive da m0 4-4.5", "B a m0 4.5-6.5",
                                   "Receive da m1 7-7.5", "B a m1 7.5-9.5"));
}

TEST(QuotasTest, AComputationWaitsForItsPeriods) {
  const std::vector<Durations::Quota> quotas = {{10, 4, 1}, {}};
  Quotas of(quotas);
  EXPECT_DOUBLE_EQ(of.Spend(1, 2, 100), 102) << "without a quota";
  EXPECT_DOUBLE_EQ(of.Spend(0, 2, 3), 5);
  EXPECT_DOUBLE_EQ(of.Spend(0, 6, 2), 12) << "one second until 7, the other from 11 on";
  EXPECT_DOUBLE_EQ(of.Spend(0, 12, 3), 15) << "uses up the period from 11 to 21";
  EXPECT_DOUBLE_EQ(of.Spend(0, 20, 1), 22);
  EXPECT_DOUBLE_EQ(of.Spend(0, 30, 2), 32) << "one second until 31";
  EXPECT_DOUBLE_EQ(of.Spend(0, 32, 0), 32);
}

// In the long run a device computes for its part of the time, however long the pieces are.
TEST(QuotasTest, SaysWhenTheDeviceRuns) {
  const std::vector<Durations::Quota> quotas = {{10, 4, 1}, {}};
  Quotas of(quotas);
  EXPECT_DOUBLE_EQ(of.Runs(0, 9), 9) << "nothing was spent";
  EXPECT_DOUBLE_EQ(of.Spend(0, 9, 7), 22) << "2 s until 11, 4 s until 15, then from 21";
  EXPECT_DOUBLE_EQ(of.Runs(0, 8), 8);
  EXPECT_DOUBLE_EQ(of.Runs(0, 10), 10);
  EXPECT_DOUBLE_EQ(of.Runs(0, 14), 14);
  EXPECT_DOUBLE_EQ(of.Runs(0, 16), 21) << "the quota is used up at 15";
  EXPECT_DOUBLE_EQ(of.Runs(0, 21.5), 21.5);
  EXPECT_DOUBLE_EQ(of.Spend(0, 22, 3), 25);
  EXPECT_DOUBLE_EQ(of.Runs(0, 26), 31);
  EXPECT_DOUBLE_EQ(of.Runs(1, 26), 26) << "without a quota";
}

TEST(QuotasTest, ManyPeriods) {
  const std::vector<Durations::Quota> quotas = {{0.1, 0.035, 0.02}};
  for (const double piece : {0.003, 0.035, 0.2, 5.0, 1e6}) {
    Quotas of(quotas);
    double now = 0;
    for (int i = 0; i < 1000; ++i) now = of.Spend(0, now, piece);
    EXPECT_NEAR(now / (1000 * piece / 0.35), 1, 0.15 / (1000 * piece)) << piece;
  }
}

TEST(SimulateTest, ADeviceWithAQuotaHoldsUpTheOthers) {
  const Program program = Compiled(program::StagesPlan({{1, 1}, {2, 1}}, 2), TwoLayers());
  Durations durations = OneAndTwo(program);
  const double whole = Simulated(program, durations, 40, 2).seconds_per_step;
  durations.quotas = {{100, 50, 0}, {}};
  durations.cores = {1, 1};
  const double limited = Simulated(program, durations, 400, 2).seconds_per_step;
  // Busy for half of a period, a device that is idle while it waits for the other loses less than half of its speed.
  EXPECT_GT(limited, whole);
  EXPECT_LT(limited, 2 * whole);
  durations.quotas[0].seconds = 60;
  EXPECT_LT(Simulated(program, durations, 400, 2).seconds_per_step, limited);
  durations.quotas[0].seconds = 101;
  EXPECT_FALSE(Simulate(program, durations, {.samples = 1, .steps = 1}).ok());
}

TEST(SimulateTest, ServersUpdateRowsBeforeTheNextPull) {
  model::ExecutionPlan plan = program::StagesPlan({{4, 2}}, 1);
  plan.stages[0].syncs = {{{{0, 1}}, {.kind = model::SyncKind::kParameterServer}}, {{{1, 4}}, program::Allreduce()}};
  plan.servers = model::Servers{"cpu", 1};
  const Program program = Compiled(plan, program::ChainModel());
  Durations durations = NoTime(program);
  durations.rows[0] = {1, 2, 4};
  const Simulation simulation = Simulated(program, durations, 6, 2);
  EXPECT_THAT(simulation.seconds_per_step, DoubleNear(7, kNear));
}

TEST(SimulateTest, RefusesDurationsThatAreNotFinite) {
  const Program program = Compiled(program::StagesPlan({{1, 1}, {2, 1}}, 2), TwoLayers());
  for (const double bad : {-1.0, std::numeric_limits<double>::infinity(), std::nan("")}) {
    Durations durations = NoTime(program);
    durations.passes[1][0].forward.per_sample = bad;
    EXPECT_THAT(Simulate(program, durations, {}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("passes of block 1")));
    durations = NoTime(program);
    durations.links[0].latency_seconds = bad;
    EXPECT_THAT(Simulate(program, durations, {}), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("links[0]")));
    durations = NoTime(program);
    durations.cores[1] = bad;
    EXPECT_THAT(Simulate(program, durations, {}), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("cores[1]")));
  }
}

TEST(SimulateTest, RefusesForeignDurationsAndTooMuchWork) {
  const Program program = Compiled(program::StagesPlan({{1, 1}, {2, 1}}, 2), TwoLayers());
  EXPECT_THAT(Simulate(program, {}, {}), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("passes has 0")));
  EXPECT_THAT(Simulate(program, NoTime(program), {.samples = 0}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Simulate(program, NoTime(program), {.steps = 0}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Simulate(program, NoTime(program), {.steps = 1'000'000'000}),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

// Ring: 2 (n - 1) messages of bytes / n; recursive doubling: log2 n messages.
TEST(ReductionSecondsTest, FollowsTheAlgorithm) {
  const Program program = Compiled(program::StagesPlan({{2, 4}}, 1), TwoLayers());
  Durations durations = NoTime(program);
  durations.links[0] = {0.5, 100};
  program::Group group = program.groups[0];
  EXPECT_THAT(ReductionSeconds(program, group, durations, 400), DoubleNear(6 * (0.5 + 1), kNear));
  group.levels[0].algorithm = model::AllreduceAlgorithm::kRecursiveDoubling;
  EXPECT_THAT(ReductionSeconds(program, group, durations, 400), DoubleNear(2 * (0.5 + 4), kNear));
  group.levels[0].algorithm = model::AllreduceAlgorithm::kLinear;
  EXPECT_THAT(ReductionSeconds(program, group, durations, 400), DoubleNear(6 * (0.5 + 4), kNear));
  group.levels[0].algorithm = model::AllreduceAlgorithm::kCentralized;
  EXPECT_THAT(ReductionSeconds(program, group, durations, 400), DoubleNear(2 * (0.5 + 12), kNear));
  // Two groups of two, then their leaders.
  group.levels = {{{{0, 1}, {2, 3}}, model::AllreduceAlgorithm::kRing}, {{{0, 2}}, model::AllreduceAlgorithm::kRing}};
  EXPECT_THAT(ReductionSeconds(program, group, durations, 400), DoubleNear(2 * 2.5 + 4.5 + 2 * 2.5, kNear));
}

}  // namespace
}  // namespace medley::sched
