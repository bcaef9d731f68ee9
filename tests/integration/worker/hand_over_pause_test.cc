// Measures how long training pauses when another coordinator takes the job over: 20 hand-overs of a running job. No
// step is lost or trained again.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <thread>

#include "common/base/mutex.h"
#include "common/base/testing/soak.h"
#include "tests/integration/worker/job_harness.h"

namespace medley::worker::hand_over_pause_test {
namespace {

namespace pb = ::medley::job::v1;

const int kHandOvers = base::Rounds(5, 20);

// Follows steps.jsonl and takes the time at which each line appears. Thread-safe.
class StepTimes {
 public:
  explicit StepTimes(std::filesystem::path file)
      : file_(std::move(file)), thread_([this](std::stop_token stop) { Run(stop); }) {}

  base::SteadyTime Now() const { return clock_.Steady(); }
  // Seconds from each line to the next, for the lines that appeared after `since`.
  std::vector<double> GapsSince(base::SteadyTime since) {
    base::MutexLock lock(mutex_);
    std::vector<double> gaps;
    for (size_t i = 1; i < times_.size(); ++i) {
      if (times_[i] > since) gaps.push_back(base::ToSeconds(times_[i] - times_[i - 1]));
    }
    return gaps;
  }

 private:
  void Run(std::stop_token stop) {
    std::streamoff read = 0;
    while (clock_.SleepFor(base::milliseconds(1), stop)) {
      std::ifstream in(file_, std::ios::binary);
      if (!in.seekg(read)) continue;
      const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
      read += static_cast<std::streamoff>(text.size());
      base::MutexLock lock(mutex_);
      times_.insert(times_.end(), static_cast<size_t>(std::count(text.begin(), text.end(), '\n')), clock_.Steady());
    }
  }

  base::SystemClock clock_;
  const std::filesystem::path file_;
  base::Mutex mutex_;
  std::vector<base::SteadyTime> times_ ABSL_GUARDED_BY(mutex_);
  std::jthread thread_;  // last: it uses the others
};

double Quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(std::lround(q * static_cast<double>(values.size() - 1)))];
}

TEST(HandOverPauseTest, TrainingGoesOnThroughEveryHandOver) {
  JobOptions options;
  options.train = ExampleData("adult.train.csv");
  options.epochs = 500;  // enough that the job does not end before the test
  JobHarness job(options);
  job.StartCoordinator(1);
  job.Apply({.stages = {{0, 1, 1}, {1, 5, 2}}, .servers = 2}, "start");
  StepTimes steps(job.checkpoints() / "steps.jsonl");
  const auto reaches = [&](int64_t step) {
    return job.WaitFor([&](const pb::Observation& o) { return o.step() >= step; }, base::seconds(60)).step();
  };
  int64_t step = reaches(50);
  const base::SteadyTime begin = steps.Now();
  step = reaches(step + 300);
  const std::vector<double> ordinary = steps.GapsSince(begin);
  std::vector<double> pauses;
  for (int term = 2; term <= 1 + kHandOvers && !HasFailure(); ++term) {
    const base::SteadyTime start = steps.Now();
    job.StartCoordinator(term);
    ASSERT_EQ(job.WaitForExit(JobHarness::CoordinatorName(term - 1)), 3) << job.AllLogs();
    job.Follow(term);
    step = reaches(step + 50);
    const std::vector<double> gaps = steps.GapsSince(start);
    pauses.push_back(*std::max_element(gaps.begin(), gaps.end()));
  }
  const pb::Observation end = job.Observe();
  EXPECT_EQ(end.coordinator_term(), 1 + kHandOvers);
  EXPECT_EQ(end.restarts(), 0);
  EXPECT_EQ(end.switches_size(), 0);
  const std::vector<double> losses = job.Losses();  // checks that no step is missing or comes twice
  EXPECT_GE(static_cast<int64_t>(losses.size()), end.step());
  EXPECT_TRUE(std::all_of(losses.begin(), losses.end(), [](double loss) { return std::isfinite(loss); }));
  ASSERT_FALSE(ordinary.empty());
  std::printf("ordinary step: p50 %.1f ms, p99 %.1f ms\n", 1e3 * Quantile(ordinary, 0.5),
              1e3 * Quantile(ordinary, 0.99));
  std::printf("pause of %d hand-overs: p50 %.0f ms, p99 %.0f ms, max %.0f ms; %ld steps, none lost or repeated\n",
              kHandOvers, 1e3 * Quantile(pauses, 0.5), 1e3 * Quantile(pauses, 0.99), 1e3 * Quantile(pauses, 1),
              static_cast<long>(losses.size()));
}

}  // namespace
}  // namespace medley::worker::hand_over_pause_test
