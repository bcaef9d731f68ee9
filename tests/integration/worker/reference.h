// Compares the losses of a job of real processes with those that one process computes from a reference.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <vector>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/model/job_spec.h"
#include "tests/integration/worker/job_harness.h"
#include "worker/data/dataset.h"

namespace medley::worker {

// The reference of a job: the losses of its first steps.
using Reference =
    std::function<std::vector<double>(const model::JobSpec& spec, const Dataset& data, const JobHistory& history)>;

// A test fails unless the losses of `history` are those of the reference, relative to these. Steps without a loss do
// not count: those who had to report it were killed.
inline void ExpectReferenceLosses(const JobHarness& job, const JobHistory& history, double most,
                                  const Reference& reference) {
  const auto spec = model::ParseJobSpec(base::ReadFile(job.folder() / "spec.json").value());
  ASSERT_TRUE(spec.ok()) << base::ToString(spec.status());
  const auto data = Dataset::Load(spec->data.train, spec->data, nullptr, {});
  ASSERT_TRUE(data.ok()) << base::ToString(data.status());
  const std::vector<double> expected = reference(*spec, **data, history);
  ASSERT_EQ(history.losses.size(), expected.size());
  double worst = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    if (std::isnan(history.losses[i])) continue;
    worst = std::max(worst, std::abs(history.losses[i] / expected[i] - 1));
    ASSERT_LT(worst, most) << "step " << i + 1;
  }
  std::printf("largest relative difference of the loss over %zu steps, with %zu drains and %zu agreements: %.2e\n",
              expected.size(), history.drains.size(), history.agreements.size(), worst);
}

// The first step of the second plan that the harness applied.
inline int64_t SecondPlan(const JobHistory& history) {
  const auto second = std::ranges::find_if(history.generations, [](int64_t generation) { return generation >= 2000; });
  return second - history.generations.begin() + 1;
}

}  // namespace medley::worker
