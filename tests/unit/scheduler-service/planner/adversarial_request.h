// Random planning requests with binding constraints. A random request is solved, and then one constraint is changed so
// that the optimum barely meets it, or does not meet it any more. This is repeated a few times. The same seed gives the
// same request.
#pragma once

#include <algorithm>
#include <numeric>

#include "common/base/testing/fake_clock.h"
#include "scheduler-service/cost/evaluate.h"
#include "scheduler-service/planner/planners.h"
#include "tests/unit/scheduler-service/planner/random_request.h"

namespace medley::sched {

inline std::optional<Provisioned> OptimumOf(const model::PlanRequest& request) {
  base::FakeClock clock;
  const auto problem = Problem::Compile(request);
  if (!problem.ok()) return std::nullopt;
  return MakeExact()->SolveStages(*problem, 0, Budget(clock, base::SteadyTime::max(), {}))->best;
}

// Nearly equal types, equal layers, and work that divides completely or not at all.
inline void Confuse(base::Rng& rng, model::PlanRequest& request) {
  std::vector<model::Layer>& layers = request.model.layers;
  if (rng.Below(4) == 0) {
    for (size_t l = 1; l < layers.size(); ++l) layers[l].profiles = layers[l - 1].profiles;
  }
  if (rng.Below(4) == 0 && request.resources.size() > 1) {
    request.resources[1].price_per_unit_hour = request.resources[0].price_per_unit_hour * rng.Uniform(0.999, 1.001);
    for (model::Layer& layer : layers) {
      model::LayerProfile copy = layer.profiles[0];
      copy.resource_type = request.resources[1].name;
      for (model::LayerProfile& p : layer.profiles) {
        if (p.resource_type == copy.resource_type) p = copy;
      }
    }
  }
  const uint64_t kind = rng.Below(6);
  for (model::Layer& layer : layers) {
    for (model::LayerProfile& p : layer.profiles) {
      if (kind == 0) p.compute_parallel = p.comm_parallel = 1;
      if (kind == 1) p.comm_parallel = 0;  // causes plateaus of the throughput
      if (kind == 2) p.sync_seconds = p.transfer_seconds = 0;
    }
  }
  for (model::LayerProfile& p : layers[0].profiles) p.compute_seconds = std::max(p.compute_seconds, 0.002);
}

// The best type alternates between layers, and transfers are cheap. So there are many stages, several on the same type.
inline void Alternate(base::Rng& rng, model::PlanRequest& request) {
  const size_t types = request.resources.size(), suited = std::min<size_t>(types, 2 + rng.Below(2));
  for (size_t l = 0; l < request.model.layers.size(); ++l) {
    for (model::LayerProfile& p : request.model.layers[l].profiles) {
      const bool suits = p.resource_type == request.resources[l % suited].name;
      p.compute_seconds *= suits ? 0.2 : rng.Uniform(1, 4);
      p.sync_seconds *= 0.1;
      p.transfer_seconds *= 0.1;
    }
  }
  for (model::Resource& r : request.resources) r.price_per_unit_hour = rng.Uniform(0.5, 2);
}

// Sets one constraint slightly above or below the value of the optimum.
inline void Tighten(base::Rng& rng, const Provisioned& optimum, model::PlanRequest& request) {
  model::Constraints& c = request.constraints;
  const Problem problem = *Problem::Compile(request);
  const std::vector<int> used = UnitsByType(problem, optimum.stages, optimum.score.server_units);
  const double beside = rng.Below(2) == 0 ? rng.Uniform(0.9, 1.001) : 1.0;
  const StageChoice& stage = optimum.stages[rng.Below(optimum.stages.size())];
  switch (rng.Below(9)) {
    case 0:
    case 1:
    case 2:
      request.resources[static_cast<size_t>(stage.type)].limit =
          std::max(0, used[static_cast<size_t>(stage.type)] - static_cast<int>(rng.Below(3)));
      break;
    case 3:
      c.max_cost_per_hour = optimum.score.hourly * beside;
      break;
    case 4:
      c.budget_usd = optimum.score.cost * (rng.Below(3) == 0 ? beside : rng.Uniform(1, 1.5));
      break;
    case 5:
      c.min_throughput = optimum.score.throughput / beside;
      break;
    case 6:
      c.deadline_seconds = request.training.TotalSamples() / optimum.score.throughput * beside;
      break;
    case 7:
      c.max_units = std::accumulate(optimum.stages.begin(), optimum.stages.end(), 0,
                                    [](int sum, const StageChoice& s) { return sum + s.units; });
      c.max_units = std::max(c.min_units, c.max_units - static_cast<int>(rng.Below(2)));
      break;
    default: {
      const double bytes = problem.LocalBytes(stage.first, stage.last, stage.type);
      if (bytes > 0) request.resources[static_cast<size_t>(stage.type)].memory_bytes = bytes * rng.Uniform(0.5, 1);
    }
  }
}

inline model::PlanRequest AdversarialRequest(uint64_t seed, const RandomOptions& options) {
  model::PlanRequest request = RandomRequest(seed, options);
  base::Rng rng(base::Mix64(seed));
  if (rng.Below(4) > 0 && request.resources.size() > 1) Alternate(rng, request);
  if (rng.Below(3) == 0) Confuse(rng, request);
  for (model::Resource& r : request.resources) r.limit = std::max(r.limit, static_cast<int>(rng.Below(20)));
  for (uint64_t i = 0, times = rng.Below(6); i < times; ++i) {
    const auto optimum = OptimumOf(request);
    if (!optimum) break;
    const model::PlanRequest before = request;
    Tighten(rng, *optimum, request);
    // Most instances must be feasible.
    if (rng.Below(4) > 0 && !OptimumOf(request)) request = before;
  }
  return request;
}

}  // namespace medley::sched
