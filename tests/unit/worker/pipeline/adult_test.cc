// Checks the model quality that the examples promise, with their hyper-parameters.
#include <gtest/gtest.h>

#include "common/base/status.h"
#include "common/model/execution_plan.h"
#include "tests/unit/worker/pipeline/pipeline_harness.h"

namespace medley::worker::testing {
namespace {

TEST(AdultTest, ReachesTheQualityOfTheExamples) {
  model::JobSpec job = AdultJob();
  job.model.embedding_dim = 16;
  job.model.hidden = {128, 128};
  job.training.epochs = 3;
  job.training.learning_rate = 0.05;
  const auto train = Dataset::Load(job.data.train, job.data, nullptr, {});
  ASSERT_TRUE(train.ok()) << base::ToString(train.status());
  const auto test = Dataset::Load(*job.data.test, job.data, &(*train)->transform(), {});
  ASSERT_TRUE(test.ok()) << base::ToString(test.status());
  for (const uint64_t seed : {1U, 2U}) {
    job.training.seed = seed;
    const Layout layout = seed == 1 ? Layout{{{0, 5}}, {{1}}} : Layout{{{0, 1}, {1, 5}}, {{1, 1}, {1}}, 2};
    const absl::StatusOr<RunOutcome> outcome = Train(job, layout, **train, test->get(), 0);
    ASSERT_TRUE(outcome.ok()) << base::ToString(outcome.status());
    EXPECT_GE(outcome->auc, 0.918) << "seed " << seed;
    EXPECT_LE(outcome->log_loss, 0.295) << "seed " << seed;
  }
}

}  // namespace
}  // namespace medley::worker::testing
