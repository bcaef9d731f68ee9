// A trainer that becomes much slower than usual is left out, stands by, and returns when it is fast again. The job
// trains every sample exactly once meanwhile, with the losses of one process that computes alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/integration/worker/job_harness.h"
#include "tests/integration/worker/reference.h"
#include "tests/integration/worker/slowed.h"
#include "tests/unit/worker/pipeline/replicas_reference.h"

namespace medley::worker::slow_member_test {
namespace {

namespace pb = ::medley::job::v1;

constexpr char kLayers[] = R"([{"name": "fc1", "kind": "FullyConnected", "out": 512, "activation": "tanh"},
                               {"name": "fc2", "kind": "FullyConnected", "out": 256, "activation": "tanh"},
                               {"name": "fc_out", "kind": "FullyConnected", "out": 1},
                               {"name": "loss", "kind": "Loss"}])";

JobOptions Options() {
  JobOptions options;
  options.train = ExampleData("adult.train.csv");
  options.layers_json = kLayers;
  options.tables = {};
  options.optimizer = "sgd";
  options.epochs = 2000;  // enough that the job does not end before the test
  options.batch_size = 512;
  options.schema = R"({"label": {"column": 14, "positive": ">50K"}, "numeric": [0, 2, 4, 10, 11, 12]})";
  return options;
}

JobShape Replicas() {
  JobShape shape{.stages = {{0, 4, 3}}};
  shape.anomaly.set_detector(plan::v1::ANOMALY_DETECTOR_RUNNING_MEAN);
  shape.anomaly.set_window(16);
  shape.anomaly.set_threshold(3);
  return shape;
}

bool LeftOut(const pb::Observation& seen, const std::string& member) {
  return std::ranges::any_of(seen.left_out(), [&](const auto& left) { return left.member() == member; });
}

pb::Observation Trained(JobHarness& job, int64_t steps) {
  return job.WaitFor([&](const pb::Observation& o) { return o.step() >= steps; }, base::seconds(120));
}

// Compares the losses of the first steps with those of one process that computes alone.
void ExpectReference(const JobHarness& job, int64_t steps) {
  JobHistory history = job.History();
  ASSERT_GE(std::ssize(history.losses), steps);
  history.losses.resize(static_cast<size_t>(steps));
  ExpectReferenceLosses(job, history, 1e-3, [&](const model::JobSpec& spec, const Dataset& data, const JobHistory&) {
    testing::ReferenceReplicas alone;
    alone.shares = {1};
    alone.groups = {{0}};
    return testing::ReferenceLosses(spec, data, {{1, alone}}, {}, steps);
  });
}

TEST(SlowMemberTest, IsLeftOutAndReturns) {
  JobHarness job(Options());
  job.StartCoordinator();
  job.Apply(Replicas(), "start");
  Trained(job, 200);  // what is usual is known
  const std::string slow = "t0-2";
  {
    const Slowed slowed(job, slow);
    const pb::Observation left = job.WaitFor([&](const auto& o) { return LeftOut(o, slow); }, base::seconds(120));
    ASSERT_FALSE(HasFailure());
    std::printf("%s\n", left.left_out(0).ShortDebugString().c_str());
    // The others train on. While the process is slow, no probe lets it return.
    Trained(job, left.step() + 100);
    const pb::Observation probed = job.WaitFor(
        [&](const auto& o) {
          return std::ranges::any_of(
              o.left_out(), [&](const auto& member) { return member.member() == slow && member.probe_seconds() > 0; });
        },
        base::seconds(120));
    ASSERT_FALSE(HasFailure());
    std::printf("%s\n", probed.left_out(0).ShortDebugString().c_str());
  }
  const pb::Observation back = job.WaitFor(
      [&](const auto& o) { return o.left_out().empty() && o.phase() == pb::JOB_PHASE_TRAINING; }, base::seconds(240));
  ASSERT_FALSE(HasFailure());
  const pb::Observation end = Trained(job, back.step() + 50);
  EXPECT_EQ(end.restarts(), 0);
  const int64_t rows = end.samples_total() / end.epochs(), steps = (rows + 511) / 512;  // of a data epoch
  EXPECT_EQ(end.samples_done(), end.step() / steps * rows + end.step() % steps * 512);
  std::map<pb::SwitchCause, int> causes;
  for (const pb::SwitchRecord& record : end.switches()) {
    std::printf("%s\n", record.ShortDebugString().c_str());
    EXPECT_FALSE(record.recovery()) << record.reason();
    EXPECT_EQ(record.lost_steps(), 0) << record.reason();
    if (record.member() == slow) ++causes[record.cause()];
  }
  EXPECT_GE(causes[pb::SWITCH_CAUSE_MEMBER_SLOW], 1);
  EXPECT_GE(causes[pb::SWITCH_CAUSE_STANDBY_RETURNED], 1);
  job.WaitFor([&](const auto&) { return static_cast<int64_t>(job.Steps()) >= end.step(); }, base::seconds(60));
  ExpectReference(job, end.step());
}

}  // namespace
}  // namespace medley::worker::slow_member_test
