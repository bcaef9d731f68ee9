// Jobs with asynchronous pipelines, in real processes, compute exactly what one process computes from PipeDream's
// equation and the record of drains: with evaluations, switches to other plans, and members that are killed.
#include <gtest/gtest.h>

#include "tests/integration/worker/job_harness.h"
#include "tests/integration/worker/reference.h"
#include "tests/integration/worker/small_job.h"
#include "tests/unit/worker/pipeline/asynchronous_reference.h"

namespace medley::worker::asynchronous_test {
namespace {

namespace pb = ::medley::job::v1;
constexpr auto kAsync = plan::v1::SCHEDULE_KIND_ASYNC_1F1B;

// With relu, a rounding error can switch a unit of a sample on or off, which the loss shows.
constexpr char kLayers[] = R"([{"name": "fc1", "kind": "FullyConnected", "out": 16, "activation": "tanh"},
                               {"name": "fc2", "kind": "FullyConnected", "out": 16, "activation": "tanh"},
                               {"name": "fc3", "kind": "FullyConnected", "out": 8, "activation": "tanh"},
                               {"name": "fc_out", "kind": "FullyConnected", "out": 1},
                               {"name": "loss", "kind": "Loss"}])";

JobOptions Options() {
  JobOptions options;
  options.train = ExampleData("adult.train.csv");
  options.test = FirstRows("adult.test.csv", 4000);
  options.layers_json = kLayers;
  options.tables = {};
  options.epochs = 4;
  options.batch_size = 256;  // 128 steps per data epoch
  options.training_json = R"(, "evaluation": {"everyEpochs": 1})";
  options.schema = R"({"label": {"column": 14, "positive": ">50K"}, "numeric": [0, 2, 4, 10, 11, 12]})";
  return options;
}

testing::ReferencePipeline PipelineOf(const JobShape& shape) {
  testing::ReferencePipeline pipeline{
      {}, shape.micro_batches, shape.max_staleness, shape.schedule == plan::v1::SCHEDULE_KIND_SYNC_1F1B};
  for (const StageShape& stage : shape.stages) pipeline.stages.push_back({stage.first, stage.end});
  return pipeline;
}

// Compares all losses of an ended job. `then`: the plan that was applied second.
void ExpectReference(const JobHarness& job, const JobShape& first, const JobShape* then = nullptr) {
  const auto losses = [&](const model::JobSpec& spec, const Dataset& data, const JobHistory& history) {
    testing::ReferenceRun run{{{1, PipelineOf(first)}}, history.drains};
    if (then != nullptr) run.pipelines[SecondPlan(history)] = PipelineOf(*then);
    return testing::ReferenceLosses(spec, data, run, std::ssize(history.losses));
  };
  ExpectReferenceLosses(job, job.History(), 1e-4, losses);
}

pb::Observation End(JobHarness& job) {
  const pb::Observation end = job.WaitForEnd(base::seconds(180));
  EXPECT_EQ(end.phase(), pb::JOB_PHASE_COMPLETE) << end.message() << job.AllLogs();
  EXPECT_EQ(end.samples_done(), end.samples_total());
  return end;
}

// Kills the members one after the other, each when the job has recovered from the kill before. A trainer that survives
// is slow meanwhile, so that the job does not end before.
void KillEach(JobHarness& job, const std::vector<std::string>& members) {
  const Slowed slowed(job, "t0-0");
  for (const std::string& member : members) {
    const pb::Observation seen = AfterSwitches(job, static_cast<int>(job.Observe().switches_size()), 3);
    ASSERT_FALSE(IsOver(seen)) << seen.ShortDebugString() << job.AllLogs();
    job.Kill(member);
    AfterSwitches(job, seen.switches_size() + 1, 10);
  }
}

TEST(AsynchronousTest, EqualsTheReferenceWithEvaluations) {
  const JobShape shape{.stages = {{0, 1, 1}, {1, 2, 2}, {2, 5, 1}}, .micro_batches = 2, .schedule = kAsync};
  JobHarness job(Options());
  job.StartCoordinator();
  job.Apply(shape, "start");
  EXPECT_EQ(End(job).restarts(), 0);
  EXPECT_EQ(job.History().drains, (std::set<int64_t>{128, 256, 384, 512}));  // an evaluation after each data epoch
  ExpectReference(job, shape);
}

TEST(AsynchronousTest, EqualsTheReferenceAcrossSwitches) {
  const JobShape first{.stages = {{0, 1, 1}, {1, 2, 1}, {2, 3, 1}, {3, 5, 1}}, .micro_batches = 1, .schedule = kAsync};
  const JobShape late{.stages = {{0, 2, 2}, {2, 5, 2}}, .micro_batches = 1, .schedule = kAsync, .max_staleness = 1};
  const JobShape synchronous{.stages = {{0, 3, 2}, {3, 5, 1}}, .micro_batches = 2};
  for (const auto& [from, to] : {std::pair(&first, &late), {&first, &synchronous}, {&synchronous, &late}}) {
    JobHarness job(Options());
    job.StartCoordinator();
    job.StartMembers(*to);
    job.Apply(*from, "start");
    job.WaitFor(Reached(20), base::seconds(60));
    Switch(job, *to, "rescale");
    const pb::Observation end = End(job);
    ASSERT_EQ(end.switches_size(), 1);
    EXPECT_FALSE(end.switches(0).recovery());
    EXPECT_EQ(end.switches(0).lost_steps(), 0);
    ExpectReference(job, *from, to);
  }
}

// Gradients that are reduced during the next step give what one process computes: with evaluations, a switch to another
// schedule, and members that are killed.
TEST(AsynchronousTest, ReductionsDuringTheNextStepEqualTheReference) {
  JobOptions options = Options();
  options.epochs = 8;
  options.checkpoint_interval = "1s";
  const JobShape shape{
      .stages = {{0, 2, 2}, {2, 5, 2}}, .micro_batches = 2, .bucket_bytes = 1, .overlap_next_step = true};
  const JobShape late{.stages = {{0, 2, 2}, {2, 5, 2}}, .micro_batches = 1, .schedule = kAsync, .max_staleness = 1};
  JobHarness job(options);
  job.StartCoordinator();
  job.Apply(shape, "start");
  job.WaitFor(Reached(30), base::seconds(60));
  KillEach(job, {"t0-1", "t1-0"});
  Switch(job, late, "rescale");
  const pb::Observation end = End(job);
  EXPECT_EQ(end.restarts(), 2);
  ExpectReference(job, shape, &late);
}

// A member with a twin is replaced from the survivors' state; the others, up to three steps ahead, roll back. Without a
// twin the state comes from a checkpoint, which was written while steps were open.
TEST(AsynchronousTest, EqualsTheReferenceWhenMembersAreKilled) {
  JobOptions options = Options();
  options.epochs = 8;
  options.checkpoint_interval = "1s";
  const JobShape shape{.stages = {{0, 1, 2}, {1, 2, 2}, {2, 5, 1}}, .micro_batches = 1, .schedule = kAsync};
  JobHarness job(options);
  job.StartCoordinator();
  job.Apply(shape, "start");
  job.WaitFor(Reached(30), base::seconds(60));
  KillEach(job, {"t0-1", "t1-0"});
  job.WaitFor([](const pb::Observation& o) { return IsOver(o) || o.last_checkpoint_step() > 0; }, base::seconds(60));
  KillEach(job, {"t2-0"});
  const pb::Observation end = End(job);
  EXPECT_EQ(end.restarts(), 3);
  EXPECT_GE(end.switches_size(), 3);
  ExpectReference(job, shape);
}

}  // namespace
}  // namespace medley::worker::asynchronous_test
