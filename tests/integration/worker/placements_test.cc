// Plans with devices and placements, in real processes: operations on any devices and in any order train what one
// process trains, also when the plan changes to stages and back, and when a process is killed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/integration/worker/job_harness.h"
#include "tests/integration/worker/small_job.h"

namespace medley::worker::placements_test {
namespace {

namespace pb = ::medley::job::v1;

constexpr int64_t kSteps = 200;
constexpr int kEndless = 5000;  // epochs: the job does not end before the test
constexpr int kOperations = 9;  // embedding_1 fc1_1 fc1_2 embedding_2 fc2_1 fc2_2 product fc_out loss

JobOptions TwoTowers() {
  JobOptions options;
  options.train = ExampleData("adult.train.csv");
  options.test = ExampleData("adult.test.csv");
  options.model = "two-tower";
  options.tables = {0, 3};
  options.epochs = 4;
  options.batch_size = 512;  // 64 steps per data epoch
  options.checkpoint_interval = "1s";
  return options;
}

// Each tower on a device of its own, the rest on all three with shares of 1, 2 and 1.
JobShape Towers(int servers = 0) {
  return {.placements = {{{{0, 3}}, {0}}, {{{3, 6}}, {1}}, {{{6, kOperations}}, {0, 1, 2}, {0.25, 0.5, 0.25}}},
          .devices = {"cpu", "cpu", "big"},
          .servers = servers};
}

// The fully connected layers of both towers have the same replicas, and the second tower begins. Servers hold the
// tables.
JobShape Interleaved() {
  JobShape shape{
      .placements = {{{{0, 1}, {3, 4}}, {1, 0}}, {{{1, 3}, {4, 6}}, {2, 0}, {0.75, 0.25}}, {{{6, kOperations}}, {1}}},
      .devices = {"cpu", "cpu", "big"},
      .servers = 2,
      .micro_batches = 3};
  for (const uint32_t op : {3, 4, 5, 0, 1, 2, 6, 7, 8}) shape.order.push_back(3 * op);
  for (const uint32_t op : {8, 7, 6, 2, 1, 0, 5, 4, 3}) shape.order.push_back(3 * op + 1);
  for (uint32_t op = 0; op < kOperations; ++op) shape.order.push_back(3 * op + 2);
  return shape;
}

JobShape OneProcess() { return {.stages = {{0, kOperations, 1}}, .servers = 0, .micro_batches = 1}; }

pb::Observation Complete(JobHarness& job) {
  const pb::Observation end = job.WaitForEnd(base::seconds(180));
  EXPECT_EQ(end.phase(), pb::JOB_PHASE_COMPLETE) << end.message() << job.AllLogs();
  EXPECT_EQ(end.samples_done(), end.samples_total());
  return end;
}

void WaitForStep(JobHarness& job, int64_t step) {
  job.WaitFor([=](const pb::Observation& o) { return o.step() >= step; }, base::seconds(60));
}

// The loss curve of one process, which all plans must repeat.
const std::vector<double>& Reference() {
  static const std::vector<double> losses = [] {
    JobHarness job(TwoTowers());
    job.StartCoordinator();
    job.Apply(OneProcess(), "start");
    Complete(job);
    return job.Losses();
  }();
  return losses;
}

// Compares the first kSteps steps of a job that may train on.
void ExpectReference(JobHarness& job) {
  const std::vector<double> losses = FirstLosses(job, kSteps);
  ASSERT_GE(std::ssize(Reference()), kSteps);
  ASSERT_EQ(std::ssize(losses), kSteps);
  double worst = 0;
  for (size_t i = 0; i < losses.size(); ++i) {
    worst = std::max(worst, std::abs(losses[i] / Reference()[i] - 1));
    ASSERT_LT(worst, 1e-4) << "step " << i + 1;
  }
  std::printf("largest relative difference of the loss over %zu steps: %.2e\n", losses.size(), worst);
}

TEST(PlacementsTest, OperationsOnAnyDevices) {
  JobHarness job(TwoTowers());
  job.StartCoordinator();
  job.Apply(Towers(), "start");
  WaitForStep(job, 10);
  const pb::Observation running = job.Observe();
  ASSERT_EQ(running.stages_size(), 2) << "one for each pool";
  EXPECT_EQ(running.stages(0).pool(), "cpu");
  EXPECT_EQ(running.stages(0).units(), 2);
  EXPECT_EQ(running.stages(1).pool(), "big");
  EXPECT_GT(running.stages(1).compute_seconds(), 0);
  const pb::Observation end = Complete(job);
  EXPECT_EQ(end.restarts(), 0);
  ExpectReference(job);
}

TEST(PlacementsTest, AnOrderServersAndReplicasThatDivideUnequally) {
  JobHarness job(TwoTowers());
  job.StartCoordinator();
  job.Apply(Interleaved(), "start");
  EXPECT_EQ(Complete(job).restarts(), 0);
  ExpectReference(job);
}

// The same members run all of the plans.
TEST(PlacementsTest, ChangesToStagesAndBack) {
  JobOptions options = TwoTowers();
  options.epochs = kEndless;
  JobHarness job(options);
  const JobShape stages{.stages = {{0, kOperations, 3}}, .servers = 2};
  std::vector<JobShape> shapes = {Towers(2), stages, Interleaved(), Towers(2)};
  for (JobShape& shape : shapes) std::ranges::fill(shape.devices, "cpu");
  job.StartCoordinator();
  for (size_t i = 0; i < shapes.size(); ++i) {
    job.Apply(shapes[i], "change");
    const int64_t plan = job.plan().generation();
    job.WaitFor([=](const pb::Observation& o) { return o.plan_generation() == plan; }, base::seconds(60));
    WaitForStep(job, job.Observe().step() + 10);
  }
  WaitForStep(job, kSteps);
  const pb::Observation end = job.Observe();
  EXPECT_EQ(end.restarts(), 0) << job.AllLogs();
  EXPECT_EQ(end.switches_size(), 3);
  ExpectReference(job);
}

// Device 2 holds only what others hold too. Device 1 alone holds a tower, which only a checkpoint brings back.
TEST(PlacementsTest, LosesAReplicaAndTheOnlyHolder) {
  JobOptions options = TwoTowers();
  options.epochs = kEndless;
  JobHarness job(options);
  job.StartCoordinator();
  job.Apply(Towers(), "start");
  WaitForStep(job, 20);
  job.Kill("t0-2");
  const pb::Observation first = AfterSwitches(job, 1, 10);
  ASSERT_GE(first.switches_size(), 1);
  EXPECT_LE(first.switches(0).lost_steps(), 1) << "one step may have been applied and not committed";
  job.WaitFor([](const pb::Observation& o) { return o.last_checkpoint_step() > 0; }, base::seconds(60));
  job.Kill("t0-1");
  const pb::Observation second = AfterSwitches(job, first.switches_size() + 1, 10);
  ASSERT_FALSE(HasFailure() || IsOver(second)) << second.ShortDebugString();
  EXPECT_GE(second.restarts(), 2);
  WaitForStep(job, kSteps);
  ExpectReference(job);
}

}  // namespace
}  // namespace medley::worker::placements_test
