// Measures how long training pauses when a plan changes: make-before-break rescales of a running job. The figure is
// judged by ./dev bench, because other work of the machine adds to it.
#include <gtest/gtest.h>

#include <algorithm>

#include "common/base/testing/soak.h"
#include "tests/integration/worker/job_harness.h"

namespace medley::worker::switch_pause_test {
namespace {

namespace pb = ::medley::job::v1;

TEST(SwitchPauseTest, TrainingGoesOnThroughEveryRescale) {
  JobOptions options;
  options.train = ExampleData("adult.train.csv");
  options.epochs = 500;  // enough that the job does not end before the test
  JobHarness job(options);
  job.StartCoordinator();
  const JobShape small{.stages = {{0, 1, 1}, {1, 5, 1}}, .servers = 1};
  const JobShape large{.stages = {{0, 1, 1}, {1, 5, 2}}, .servers = 2};
  job.Apply(small, "start");
  const int rescales = base::Rounds(5, 20);
  std::vector<double> pauses;
  for (int i = 1; i <= rescales; ++i) {
    const int64_t step = job.WaitFor([](const pb::Observation& o) { return o.step() > 0; }, base::seconds(60)).step();
    job.Apply(i % 2 == 1 ? large : small, "rescale " + std::to_string(i));
    const pb::Observation now = job.WaitFor(
        [&](const pb::Observation& o) {
          return o.switches_size() >= i && o.step() > step + 2 && o.phase() == pb::JOB_PHASE_TRAINING;
        },
        base::seconds(60));
    ASSERT_FALSE(HasFailure()) << "rescale " << i;
    const pb::SwitchRecord& record = now.switches(now.switches_size() - 1);
    EXPECT_FALSE(record.recovery()) << record.reason();
    pauses.push_back(record.pause_seconds());
  }
  std::sort(pauses.begin(), pauses.end());
  std::printf("pause of %d generation switches: p50 %.0f ms, max %.0f ms\n", rescales, 1e3 * pauses[pauses.size() / 2],
              1e3 * pauses.back());
}

}  // namespace
}  // namespace medley::worker::switch_pause_test
