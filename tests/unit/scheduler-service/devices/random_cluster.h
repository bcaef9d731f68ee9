// Random and regular clusters, with models to plan on them: of tests and benches.
#pragma once

#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "common/base/rng.h"
#include "common/model/device.h"
#include "common/model/model.h"
#include "common/model/planning.h"
#include "common/model/resource.h"
#include "scheduler-service/devices/problem.h"

namespace medley::sched {

// A number between low and high whose logarithm is uniform.
inline double LogUniform(base::Rng& rng, double low, double high) { return low * std::pow(high / low, rng.Uniform()); }

// A resource type without price and limit.
inline model::Resource UnpricedResource(std::string name, double memory_bytes = 0) {
  model::Resource resource;
  resource.name = std::move(name);
  resource.memory_bytes = memory_bytes;
  return resource;
}

// A layer that takes `seconds` of a batch on the first pool, and `slower[p]` times that on pool p.
inline model::Layer LayerOn(const std::vector<std::string>& pools, const std::vector<double>& slower, double seconds,
                            double weight_bytes, double output_bytes) {
  model::Layer layer;
  layer.kind = "OTHER";
  layer.weight_bytes = weight_bytes;
  layer.output_bytes = output_bytes;
  for (size_t p = 0; p < pools.size(); ++p) {
    model::LayerProfile times;
    times.resource_type = pools[p];
    times.compute_seconds = seconds * slower[p];
    times.compute_parallel = 1;
    layer.profiles.push_back(times);
  }
  return layer;
}

// `counts[p]` devices of pool p on machines of their own. Layers of `seconds` and `weight_bytes` in all, equally.
inline model::PlanRequest ClusterRequest(const std::vector<int>& counts, const std::vector<double>& slower,
                                         int layers = 4, double seconds = 1, double weight_bytes = 4e6,
                                         double output_bytes = 1000) {
  model::PlanRequest request;
  request.objective = model::Objective::kStepTime;
  request.planner.name = "auto";
  request.training.profile_batch_size = 512;
  std::vector<std::string> pools;
  for (size_t p = 0; p < counts.size(); ++p) {
    pools.push_back("p" + std::to_string(p));
    request.resources.push_back(UnpricedResource(pools.back()));
    for (int d = 0; d < counts[p]; ++d) {
      request.cluster.devices.push_back({pools.back() + "-" + std::to_string(d), pools.back(), "", ""});
    }
  }
  request.cluster.links = {{"*", "*", 1e-4, 1e9}};
  request.model.name = "layers";
  for (int l = 0; l < layers; ++l) {
    request.model.layers.push_back(LayerOn(pools, slower, seconds / layers, weight_bytes / layers, output_bytes));
    request.model.layers.back().name = "l" + std::to_string(l);
  }
  return request;
}

// Devices of 1 to 3 pools in 1 to 3 zones, with links whose speeds differ by up to three orders of magnitude.
inline model::PlanRequest RandomClusterRequest(base::Rng& rng, int devices, int layers = 4) {
  const int pools = 1 + static_cast<int>(rng.Below(3)), zones = 1 + static_cast<int>(rng.Below(3));
  std::vector<double> slower = {1};
  while (static_cast<int>(slower.size()) < pools) slower.push_back(LogUniform(rng, 1, 30));
  model::PlanRequest request =
      ClusterRequest(std::vector<int>(static_cast<size_t>(pools), 0), slower, layers, LogUniform(rng, 0.05, 5),
                     LogUniform(rng, 1e6, 1e9), LogUniform(rng, 1e3, 1e6));
  for (int d = 0; d < devices; ++d) {
    const std::string pool = "p" + std::to_string(rng.Below(static_cast<uint64_t>(pools)));
    const std::string zone = "z" + std::to_string(rng.Below(static_cast<uint64_t>(zones)));
    request.cluster.devices.push_back({"d" + std::to_string(d), pool, "", zone});
  }
  request.cluster.links = {{"*", "*", LogUniform(rng, 1e-4, 1e-2), LogUniform(rng, 1e7, 1e9)}};
  for (const model::Device& device : request.cluster.devices) {
    const std::string& zone = device.location;
    request.cluster.links.push_back({zone, zone, LogUniform(rng, 1e-5, 1e-3), LogUniform(rng, 1e8, 1e10)});
  }
  return request;
}

// The same, and some single links that are 3 to 100 times slower than the rest.
inline model::PlanRequest WithSlowLinks(base::Rng& rng, model::PlanRequest request, double part) {
  const auto& devices = request.cluster.devices;
  const auto n = static_cast<uint64_t>(devices.size());
  const auto count = static_cast<int>(part * static_cast<double>(n) + 0.5);
  for (int i = 0; i < count && n > 1; ++i) {
    const auto a = rng.Below(n), b = rng.Below(n);
    if (a == b) continue;
    request.cluster.links.push_back({devices[a].id, devices[b].id, 1e-3, LogUniform(rng, 1e6, 3e7)});
  }
  return request;
}

// The problem of a valid request; the test fails otherwise.
inline DeviceProblem ProblemOf(model::PlanRequest request) {
  auto problem = DeviceProblem::Compile(std::move(request));
  if (!problem.ok()) throw std::invalid_argument(problem.status().ToString());
  return *std::move(problem);
}

}  // namespace medley::sched
