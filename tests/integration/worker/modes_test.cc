// Jobs whose replicas differ, in real processes, compute exactly what one process computes from the record of steps
// that agreed: with evaluations, checkpoints, another number of replicas and another coordinator.
#include <gtest/gtest.h>

#include "tests/integration/worker/job_harness.h"
#include "tests/integration/worker/reference.h"
#include "tests/integration/worker/small_job.h"
#include "tests/unit/worker/pipeline/replicas_reference.h"

namespace medley::worker::modes_test {
namespace {

namespace pb = ::medley::job::v1;

constexpr char kTanhLayers[] = R"([{"name": "fc1", "kind": "FullyConnected", "out": 16, "activation": "tanh"},
                                   {"name": "fc2", "kind": "FullyConnected", "out": 8, "activation": "tanh"},
                                   {"name": "fc_out", "kind": "FullyConnected", "out": 1},
                                   {"name": "loss", "kind": "Loss"}])";

JobOptions Replicated() {
  JobOptions options;
  options.train = ExampleData("adult.train.csv");
  options.test = FirstRows("adult.test.csv", 4000);
  options.layers_json = kTanhLayers;
  options.tables = {};
  options.epochs = 4;
  options.batch_size = 256;  // 128 steps per data epoch
  options.checkpoint_interval = "1s";
  options.schema = R"({"label": {"column": 14, "positive": ">50K"}, "numeric": [0, 2, 4, 10, 11, 12]})";
  return options;
}

testing::ReferenceReplicas ReplicasOf(const JobShape& shape) {
  testing::ReferenceReplicas replicas;
  const StageShape& stage = shape.stages.front();
  for (int unit = 0; unit < stage.units; ++unit) {
    replicas.shares.push_back(1);
    const int group = stage.group > 0 ? unit / stage.group : unit;
    replicas.groups.resize(static_cast<size_t>(group) + 1);
    replicas.groups.back().push_back(static_cast<size_t>(unit));
  }
  return replicas;
}

void ExpectReference(const JobHarness& job, const JobShape& first, const JobShape* then = nullptr) {
  const auto losses = [&](const model::JobSpec& spec, const Dataset& data, const JobHistory& history) {
    std::map<int64_t, testing::ReferenceReplicas> replicas{{1, ReplicasOf(first)}};
    if (then != nullptr) replicas[SecondPlan(history)] = ReplicasOf(*then);
    return testing::ReferenceLosses(spec, data, replicas, history.agreements, std::ssize(history.losses));
  };
  ExpectReferenceLosses(job, job.History(), 1e-4, losses);
}

pb::Observation Complete(JobHarness& job) {
  const pb::Observation end = job.WaitForEnd(base::seconds(180));
  EXPECT_EQ(end.phase(), pb::JOB_PHASE_COMPLETE) << end.message() << job.AllLogs();
  EXPECT_EQ(end.samples_done(), end.samples_total());
  return end;
}

JobShape Percentage(int units, double fraction, int group = 0) {
  return {.stages = {{.first = 0, .end = 4, .units = units, .group = group}},
          .mode = plan::v1::SYNC_MODE_PERCENTAGE,
          .fraction = fraction};
}

TEST(ModesTest, APercentageOfTheSteps) {
  JobOptions options = Replicated();
  options.training_json = R"(, "evaluation": {"everySteps": 50})";
  JobHarness job(options);
  const JobShape shape = Percentage(2, 0.25);
  job.StartCoordinator();
  job.Apply(shape, "start");
  const pb::Observation end = Complete(job);
  EXPECT_EQ(end.restarts(), 0);
  const JobHistory history = job.History();
  EXPECT_GE(history.agreements.size(), size_t{512 / 4});
  for (int64_t step = 50; step <= 500; step += 50) EXPECT_TRUE(history.agreements.contains(step)) << step;
  EXPECT_TRUE(history.agreements.contains(512));
  ExpectReference(job, shape);
}

TEST(ModesTest, OnlyWhereTheJobNeedsIt) {
  JobHarness job(Replicated());
  const JobShape shape{.stages = {{0, 4, 3}}, .mode = plan::v1::SYNC_MODE_NONE};
  job.StartCoordinator();
  job.Apply(shape, "start");
  Complete(job);
  const JobHistory history = job.History();
  EXPECT_TRUE(history.agreements.contains(512));
  EXPECT_LT(history.agreements.size(), 20U) << "checkpoints and the end";
  ExpectReference(job, shape);
}

TEST(ModesTest, AnotherNumberOfReplicas) {
  for (const auto& [first, then] :
       {std::pair(Percentage(2, 0.1), Percentage(4, 0.2, 2)),
        {Percentage(4, 0.1, 2), {.stages = {{0, 4, 2}}, .mode = plan::v1::SYNC_MODE_NONE}}}) {
    JobHarness job(Replicated());
    job.StartCoordinator();
    job.StartMembers(then);
    job.Apply(first, "start");
    job.WaitFor(Reached(20), base::seconds(60));
    Switch(job, then, "rescale");
    const pb::Observation end = Complete(job);
    ASSERT_EQ(end.switches_size(), 1);
    EXPECT_EQ(end.switches(0).lost_steps(), 0);
    ExpectReference(job, first, &then);
  }
}

// While it trains: one that takes over during the evaluation counts as a restart.
TEST(ModesTest, AnotherCoordinator) {
  JobHarness job(Replicated());
  const JobShape shape = Percentage(2, 0.1);
  job.StartCoordinator(1);
  job.Apply(shape, "start");
  job.WaitFor(Reached(20), base::seconds(60));
  {
    const Slowed slowed(job, "t0-0");
    job.StartCoordinator(2);
    EXPECT_EQ(job.WaitForExit("coordinator"), 3) << job.AllLogs();  // another one leads
  }
  job.Follow(2);
  const pb::Observation end = Complete(job);
  EXPECT_EQ(end.coordinator_term(), 2);
  EXPECT_EQ(end.restarts(), 0) << job.AllLogs();
  ExpectReference(job, shape);
}

// The fraction follows the measured times, which no reference knows; the record of agreements says what it was.
TEST(ModesTest, FlexibleSynchronisation) {
  JobHarness job(Replicated());
  const JobShape shape{.stages = {{0, 4, 2}}, .mode = plan::v1::SYNC_MODE_FLEXIBLE, .target_ratio = 0.02};
  job.StartCoordinator();
  job.Apply(shape, "start");
  const pb::Observation running =
      job.WaitFor([](const pb::Observation& o) { return o.step() >= 200 || o.phase() == pb::JOB_PHASE_COMPLETE; },
                  base::seconds(60));
  EXPECT_GT(running.agreement().fraction(), 0);
  Complete(job);
  EXPECT_LT(job.History().agreements.size(), 512U) << "agreeing takes more than 2 % of the time of these small steps";
  ExpectReference(job, shape);
}

}  // namespace
}  // namespace medley::worker::modes_test
