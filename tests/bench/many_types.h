// Adds resource types to a request: copies of the last type with random changes of speed, network and price. The same
// seed gives the same types.
#pragma once

#include <cmath>

#include <fmt/core.h>

#include "common/base/rng.h"
#include "common/model/model.h"
#include "common/model/planning.h"
#include "common/model/resource.h"

namespace medley::sched {

inline model::PlanRequest WithTypes(model::PlanRequest request, int types, uint64_t seed) {
  base::Rng rng(seed);
  const model::Resource pattern = request.resources.back();
  while (static_cast<int>(request.resources.size()) < types) {
    model::Resource r = pattern;
    r.name = fmt::format("{}-{}", pattern.name, request.resources.size());
    const double compute = std::exp(rng.Uniform(-1.0, 1.0)), comm = std::exp(rng.Uniform(-0.7, 0.7));
    r.price_per_unit_hour *= std::pow(compute, -0.9) * std::exp(rng.Uniform(-0.4, 0.4));
    for (model::Layer& layer : request.model.layers) {
      for (const model::LayerProfile& p : layer.profiles) {
        if (p.resource_type != pattern.name) continue;
        model::LayerProfile copy = p;
        copy.resource_type = r.name;
        copy.compute_seconds *= compute * std::exp(rng.Uniform(-0.3, 0.3));
        copy.sync_seconds *= comm;
        copy.transfer_seconds *= comm;
        layer.profiles.push_back(copy);
        break;
      }
    }
    request.resources.push_back(r);
  }
  return request;
}

}  // namespace medley::sched
