// Trains a job of real processes to its end, for tests that compare losses under several plans.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "common/base/file.h"
#include "tests/integration/worker/job_harness.h"
#include "tests/integration/worker/small_job.h"

namespace medley::worker {

struct Outcome {
  std::vector<double> losses;
  job::v1::Observation end;
  std::string header;          // of the exported file: the tensors' names and shapes
  std::vector<float> weights;  // all of them
};

// `then`: the plan from step 20 on; `kill`: a member is killed 20 steps after the switch, or at step 40.
inline Outcome Train(const JobOptions& options, const JobShape& first, const JobShape* then = nullptr,
                     bool kill = false) {
  JobHarness job(options);
  job.StartCoordinator();
  if (then != nullptr) job.StartMembers(*then);
  job.Apply(first, "start");
  if (then != nullptr) {
    job.WaitFor(Reached(20), base::seconds(120));
    EXPECT_FALSE(IsOver(Switch(job, *then, "rescale"))) << "the job is too short";
  }
  if (kill) {
    EXPECT_FALSE(IsOver(AfterSwitches(job, then == nullptr ? 0 : 1, 20))) << "the job is too short for its kill";
    job.Kill("t0-0");
  }
  Outcome run;
  run.end = job.WaitForEnd(base::seconds(240));
  run.losses = job.Losses();
  EXPECT_EQ(run.end.phase(), job::v1::JOB_PHASE_COMPLETE) << run.end.message() << job.AllLogs();
  EXPECT_EQ(run.end.samples_done(), run.end.samples_total());
  const auto file = base::ReadFile(job.checkpoints() / "export" / "model.safetensors");
  EXPECT_TRUE(file.ok()) << file.status();
  uint64_t header = 0;  // its bytes
  if (!file.ok() || file->size() < sizeof header) return run;
  std::memcpy(&header, file->data(), sizeof header);
  EXPECT_LE(header, file->size() - sizeof header);
  const size_t begin = sizeof header + std::min<size_t>(header, file->size() - sizeof header);
  run.header = file->substr(sizeof header, begin - sizeof header);
  run.weights.resize((file->size() - begin) / sizeof(float));
  std::memcpy(run.weights.data(), file->data() + begin, run.weights.size() * sizeof(float));
  return run;
}

constexpr size_t kAllSteps = std::numeric_limits<size_t>::max();

// The largest relative difference of the losses of the first `steps`. On some processors kernels such as convolutions
// round unlike for unlike sizes of a batch, which grows from step to step: what is wrong in a plan shows in the first.
inline double LargestDifference(const Outcome& a, const Outcome& b, size_t steps = kAllSteps) {
  EXPECT_EQ(a.losses.size(), b.losses.size());
  double worst = 0;
  for (size_t i = 0; i < std::min({a.losses.size(), b.losses.size(), steps}); ++i) {
    worst = std::max(worst, std::abs(a.losses[i] - b.losses[i]) / a.losses[i]);
  }
  return worst;
}

// The difference of the weights: the norm of the difference, relative to that of `a`.
inline double WeightDifference(const Outcome& a, const Outcome& b) {
  EXPECT_EQ(a.header, b.header);
  EXPECT_EQ(a.weights.size(), b.weights.size());
  double difference = 0, size = 0;
  for (size_t i = 0; i < std::min(a.weights.size(), b.weights.size()); ++i) {
    difference += std::pow(static_cast<double>(a.weights[i]) - static_cast<double>(b.weights[i]), 2);
    size += std::pow(static_cast<double>(a.weights[i]), 2);
  }
  return std::sqrt(difference / size);
}

}  // namespace medley::worker
