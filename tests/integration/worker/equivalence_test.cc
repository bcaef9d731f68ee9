// The loss curve does not depend on the plan: compares one process, a pipeline with servers, and the same pipeline
// rescaled in the middle.
#include <gtest/gtest.h>

#include <cmath>

#include "common/base/testing/soak.h"
#include "tests/integration/worker/job_harness.h"
#include "tests/integration/worker/small_job.h"

namespace medley::worker::equivalence_test {
namespace {

namespace pb = ::medley::job::v1;
const auto kSteps = static_cast<size_t>(base::Rounds(100, 200));

// Adagrad divides by the root of the sum of squared gradients. While that is near zero, a rounding error of a tiny
// gradient becomes a full step, which changes the loss of wide layers by 1e-3. So the test uses Adagrad with a narrow
// model, where its state is transferred too, and SGD with a wide model.
JobOptions Narrow() {
  JobOptions options;
  // 102 steps, the last one of 144 rows; in ./dev soak two data epochs of 128 steps.
  options.train = FirstRows("adult.train.csv", base::Rounds(26000, 32561));
  options.test = FirstRows("adult.test.csv", base::Rounds(4000, 16281));
  options.epochs = base::Rounds(1, 2);
  options.batch_size = 256;
  return options;
}

JobOptions Wide() {
  JobOptions options = Narrow();
  options.hidden = {256, 128};
  options.optimizer = "sgd";
  options.learning_rate = 0.05;
  return options;
}

struct Curve {
  std::vector<double> losses;
  pb::Observation end;
};

Curve TrainWith(const JobOptions& options, const JobShape& first, const JobShape* then) {
  JobHarness job(options);
  job.StartCoordinator();
  if (then != nullptr) job.StartMembers(*then);
  job.Apply(first, "start");
  if (then != nullptr) {
    job.WaitFor(Reached(5), base::seconds(60));
    Switch(job, *then, "rescale");
  }
  Curve curve;
  curve.end = job.WaitForEnd(base::seconds(120));
  curve.losses = job.Losses();
  EXPECT_EQ(curve.end.phase(), pb::JOB_PHASE_COMPLETE) << curve.end.message() << job.AllLogs();
  EXPECT_EQ(curve.end.samples_done(), curve.end.samples_total());
  return curve;
}

void ExpectSame(const Curve& a, const Curve& b, const char* what) {
  ASSERT_GE(a.losses.size(), kSteps);
  ASSERT_EQ(a.losses.size(), b.losses.size());
  double worst = 0;
  for (size_t i = 0; i < kSteps; ++i) {
    const double difference = std::abs(a.losses[i] - b.losses[i]) / a.losses[i];
    EXPECT_LT(difference, 1e-4) << what << ", step " << i + 1;
    worst = std::max(worst, difference);
  }
  std::printf("%s: largest relative difference of the loss over %zu steps: %.2e\n", what, kSteps, worst);
}

// `one` is a single process.
struct Shapes {
  JobShape one, pipeline, rescaled;
};

Shapes OfChain() {
  const int operations = 5;
  return {{.stages = {{0, operations, 1}}},
          {.stages = {{0, 1, 2}, {1, operations, 2}}, .servers = 2},
          {.stages = {{0, 1, 1}, {1, 3, 1}, {3, operations, 3}}, .servers = 3}};
}

void Compare(const JobOptions& options, const Shapes& shapes = OfChain()) {
  const auto& [one, pipeline, rescaled] = shapes;
  const Curve reference = TrainWith(options, one, nullptr);
  ASSERT_FALSE(testing::Test::HasFailure());
  EXPECT_LT(reference.losses[kSteps - 1], reference.losses[0]);
  const Curve parallel = TrainWith(options, pipeline, nullptr);
  ASSERT_FALSE(testing::Test::HasFailure());
  ExpectSame(reference, parallel, "1 process vs stages with replicas and servers");
  const Curve elastic = TrainWith(options, pipeline, &rescaled);
  ASSERT_FALSE(elastic.end.switches().empty());
  EXPECT_FALSE(elastic.end.switches(0).recovery());
  std::printf("rescaled at step %ld, pause %.3f s\n", static_cast<long>(elastic.end.switches(0).at_step()),
              elastic.end.switches(0).pause_seconds());
  ExpectSame(reference, elastic, "1 process vs the same with a rescale");
  EXPECT_NEAR(reference.end.metrics().at("auc"), parallel.end.metrics().at("auc"), 1e-3);
  EXPECT_NEAR(reference.end.metrics().at("auc"), elastic.end.metrics().at("auc"), 1e-3);
  std::printf("auc %.4f log loss %.4f\n", reference.end.metrics().at("auc"), reference.end.metrics().at("logLoss"));
}

// Adam divides by a moving average, so that differences neither grow nor vanish.
JobOptions NarrowAdam() {
  JobOptions options = Narrow();
  options.optimizer = "adam";
  options.learning_rate = 0.001;
  return options;
}

TEST(EquivalenceTest, AdagradOnANarrowModel) { Compare(Narrow()); }
TEST(EquivalenceTest, AdamOnANarrowModel) { Compare(NarrowAdam()); }
TEST(EquivalenceTest, SgdOnAWideModel) { Compare(Wide()); }

// embedding fc1 fc2 fc3 add3 fc_out loss: the output of fc1 skips a stage.
TEST(EquivalenceTest, AResidualModel) {
  JobOptions options = Narrow();
  options.model = "residual";
  options.hidden = {32, 16, 32};
  Compare(options, {{.stages = {{0, 7, 1}}},
                    {.stages = {{0, 2, 2}, {2, 3, 2}, {3, 7, 1}}, .servers = 2},
                    {.stages = {{0, 1, 1}, {1, 4, 1}, {4, 7, 3}}, .servers = 3}});
}

// embedding_1 fc1_1 fc1_2 embedding_2 fc2_1 fc2_2 product fc_out loss: two tables, in stages of their own.
TEST(EquivalenceTest, ATwoTowerModel) {
  JobOptions options = Narrow();
  options.model = "two-tower";
  options.tables = {0, 3};
  Compare(options, {{.stages = {{0, 9, 1}}},
                    {.stages = {{0, 3, 2}, {3, 6, 2}, {6, 9, 1}}, .servers = 2},
                    {.stages = {{0, 2, 1}, {2, 4, 2}, {4, 9, 2}}, .servers = 3}});
}

// Every algorithm gives the curve of one process, with groups too, before and after a rescale; those that add in rank
// order give the same bits twice.
TEST(EquivalenceTest, AlgorithmsAndGroups) {
  JobOptions options = Narrow();
  const int operations = 5;
  const Curve reference = TrainWith(options, {.stages = {{0, operations, 1}}}, nullptr);
  const auto shape = [&](plan::v1::AllreduceAlgorithm algorithm, int units, int group, int root) {
    return JobShape{.stages = {{0, 1, 1}, {1, operations, units, algorithm, group, root}}, .servers = 1};
  };
  struct Case {
    const char* name;
    plan::v1::AllreduceAlgorithm algorithm;
    int units, group, root;
  };
  for (const Case& one : {Case{"recursive doubling of 3", plan::v1::ALLREDUCE_ALGORITHM_RECURSIVE_DOUBLING, 3, 0, 0},
                          Case{"centralized at 2 of 3", plan::v1::ALLREDUCE_ALGORITHM_CENTRALIZED, 3, 0, 2},
                          Case{"linear of 3", plan::v1::ALLREDUCE_ALGORITHM_LINEAR, 3, 0, 0},
                          Case{"ring over groups of 2", plan::v1::ALLREDUCE_ALGORITHM_RING, 4, 2, 0}}) {
    const JobShape first = shape(one.algorithm, one.units, one.group, one.root), then = shape(one.algorithm, 2, 1, 1);
    ExpectSame(reference, TrainWith(options, first, &then), one.name);
    ASSERT_FALSE(HasFailure()) << one.name;
  }
  options.epochs = 1;
  const JobShape centralized = shape(plan::v1::ALLREDUCE_ALGORITHM_CENTRALIZED, 3, 2, 1);
  EXPECT_EQ(TrainWith(options, centralized, nullptr).losses, TrainWith(options, centralized, nullptr).losses);
}

}  // namespace
}  // namespace medley::worker::equivalence_test
