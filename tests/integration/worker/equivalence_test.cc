// The loss curve does not depend on the plan: one process, a pipeline with servers, and the same rescaled in the middle.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/integration/worker/job_harness.h"

namespace medley::worker {
namespace {

namespace pb = ::medley::job::v1;
constexpr size_t kSteps = 200;

JobOptions Options() {
  JobOptions options;
  options.train = ExampleData("adult.train.csv");
  options.test = ExampleData("adult.test.csv");
  options.epochs = 2;  // 32,560 rows a data epoch, 128 a step: 255 steps each
  return options;
}

struct Curve {
  std::vector<double> losses;
  pb::Observation end;
};

Curve Train(const JobShape& first, const JobShape* then) {
  JobHarness job(Options());
  job.StartCoordinator();
  job.Apply(first, "start");
  if (then != nullptr) {
    job.WaitFor([](const pb::Observation& o) { return o.step() >= 20; }, base::seconds(60));
    job.Apply(*then, "rescale");
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
  ASSERT_GE(b.losses.size(), kSteps);
  double worst = 0;
  for (size_t i = 0; i < kSteps; ++i) worst = std::max(worst, std::abs(a.losses[i] - b.losses[i]) / a.losses[i]);
  std::printf("%s: largest relative difference of the loss over %zu steps: %.2e\n", what, kSteps, worst);
  EXPECT_LT(worst, 1e-4) << what;
}

TEST(EquivalenceTest, TheLossCurveDoesNotDependOnThePlan) {
  const int operations = 5;
  const JobShape one{.stages = {{0, operations, 1}}};
  const JobShape pipeline{.stages = {{0, 1, 2}, {1, operations, 2}}, .servers = 2};
  const JobShape rescaled{.stages = {{0, 1, 1}, {1, 3, 1}, {3, operations, 3}}, .servers = 3};
  const Curve reference = Train(one, nullptr);
  ASSERT_FALSE(HasFailure());
  EXPECT_LT(reference.losses[kSteps - 1], reference.losses[0]);
  const Curve parallel = Train(pipeline, nullptr);
  ASSERT_FALSE(HasFailure());
  ExpectSame(reference, parallel, "1 process vs 2 stages x 2 replicas + 2 servers");
  const Curve elastic = Train(pipeline, &rescaled);
  ASSERT_FALSE(HasFailure());
  ASSERT_FALSE(elastic.end.switches().empty());
  std::printf("rescaled at step %ld, pause %.3f s\n", static_cast<long>(elastic.end.switches(0).at_step()),
              elastic.end.switches(0).pause_seconds());
  EXPECT_LT(elastic.end.switches(0).at_step(), static_cast<int64_t>(kSteps));
  ExpectSame(reference, elastic, "1 process vs the same with a rescale");
  std::printf("auc %.4f log loss %.4f\n", reference.end.metrics().at("auc"), reference.end.metrics().at("log_loss"));
  EXPECT_NEAR(reference.end.metrics().at("auc"), parallel.end.metrics().at("auc"), 1e-3);
}

}  // namespace
}  // namespace medley::worker
