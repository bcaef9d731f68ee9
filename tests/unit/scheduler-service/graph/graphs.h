// What the tests of operation-level plans share.
#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <vector>

#include "common/base/testing/status_matchers.h"
#include "scheduler-service/graph/search.h"
#include "scheduler-service/graph/strategy.h"
#include "scheduler-service/graph/timer.h"
#include "tests/unit/scheduler-service/devices/random_cluster.h"

namespace medley::sched {

inline Budget Unlimited() {
  static const base::SystemClock clock;
  return {clock, base::SteadyTime::max(), {}};
}

// A graph in which each operation uses the outputs of one or two before it. Some operations have no parameters, and
// devices are unlike from operation to operation.
inline DeviceProblem RandomGraphProblem(base::Rng& rng, int devices, int operations) {
  model::PlanRequest request = RandomClusterRequest(rng, devices, operations);
  for (int i = 0; i < operations; ++i) {
    model::Layer& layer = request.model.layers[static_cast<size_t>(i)];
    const double work = LogUniform(rng, 0.1, 10);
    layer.weight_bytes = rng.Below(3) == 0 ? 0 : layer.weight_bytes * LogUniform(rng, 0.01, 10);
    layer.output_bytes *= LogUniform(rng, 0.1, 10);
    for (model::LayerProfile& times : layer.profiles) times.compute_seconds *= work * LogUniform(rng, 0.6, 1.6);
    if (i < 2) continue;
    layer.inputs = {i - 1 - static_cast<int>(rng.Below(2))};
    if (rng.Below(2) == 0) layer.inputs.push_back(static_cast<int>(rng.Below(static_cast<uint64_t>(i))));
    std::ranges::sort(layer.inputs);
    layer.inputs.erase(std::ranges::unique(layer.inputs).begin(), layer.inputs.end());
  }
  return ProblemOf(std::move(request));
}

inline GraphStrategy RandomStrategy(base::Rng& rng, const DeviceProblem& problem, const OperationGroups& groups) {
  GraphStrategy strategy;
  for (int g = 0; g < groups.count(); ++g) {
    strategy.actions.push_back(static_cast<int>(rng.Below(static_cast<uint64_t>(ActionCount(problem)))));
  }
  const auto sizes = BucketSizes(problem);
  strategy.bucket_bytes = sizes[rng.Below(sizes.size())];
  strategy.order = kOrders[rng.Below(kOrders.size())];
  return strategy;
}

}  // namespace medley::sched
