// Random planning requests for property tests: the same seed gives the same request.
#pragma once

#include <algorithm>

#include <fmt/core.h>

#include "common/base/rng.h"
#include "common/model/model.h"
#include "common/model/planning.h"
#include "common/model/resource.h"

namespace medley::sched {

struct RandomOptions {
  int most_layers = 8;
  int most_types = 4;
  int most_limit = 24;
  bool boundaries = false;  // half of the requests have micro-batches and processor time of messages
  bool links = false;       // most requests have unlike links between types, and half measured allreduces
};

inline model::LayerProfile RandomProfile(base::Rng& rng, const std::string& type, double speed, bool served) {
  model::LayerProfile p;
  p.resource_type = type;
  p.compute_seconds = rng.Below(12) == 0 ? 0 : rng.Uniform(0.001, 0.05) / speed;
  p.compute_parallel = rng.Below(4) == 0 ? 1 : rng.Uniform(0.5, 1);
  p.sync_seconds = rng.Uniform(0, 0.02);
  p.transfer_seconds = rng.Uniform(0, 0.01);
  p.comm_parallel = rng.Below(4) == 0 ? 0 : rng.Uniform(0.3, 1);
  p.server_seconds = served ? rng.Uniform(0.0005, 0.02) : 0;
  return p;
}

inline void RandomConstraints(base::Rng& rng, model::PlanRequest& request) {
  model::Constraints& c = request.constraints;
  if (rng.Below(3) > 0) c.min_throughput = rng.Uniform(200, 6000);
  if (rng.Below(4) == 0) c.max_cost_per_hour = rng.Uniform(1, 60);
  if (rng.Below(5) == 0) c.deadline_seconds = request.training.TotalSamples() / rng.Uniform(200, 5000);
  if (rng.Below(6) == 0) c.budget_usd = rng.Uniform(0.5, 60);
  if (rng.Below(6) == 0) c.min_units = 1 + static_cast<int>(rng.Below(3));
  if (rng.Below(4) == 0) c.max_units = 2 + static_cast<int>(rng.Below(24));
}

// What ends of stages cost. Leaves the random numbers of the rest of the request as they are.
inline void RandomBoundaries(uint64_t seed, model::PlanRequest& request) {
  base::Rng rng(base::Mix64(seed));
  if (rng.Below(2) == 0) return;
  request.training.micro_batches = 1 + static_cast<int>(rng.Below(rng.Below(2) == 0 ? 4 : 32));
  if (rng.Below(3) == 0) return;
  for (model::Layer& layer : request.model.layers) layer.output_bytes = rng.Uniform(100, 20'000);
  for (model::Resource& resource : request.resources) {
    resource.processor_seconds_per_message = rng.Uniform(0, 3e-4);
    resource.processor_seconds_per_byte = rng.Uniform(0, 3e-9);
  }
  if (rng.Below(2) == 0) return;
  for (model::Resource& resource : request.resources) {
    resource.processor_seconds_per_message_in_a_row = rng.Uniform(0, 1.2) * resource.processor_seconds_per_message;
    resource.computed_bytes_per_message = rng.Uniform(1e5, 2e7);
  }
}

// Links between some pairs of types, some in one direction only, and what an allreduce takes whatever its size. Leaves
// the random numbers of the rest of the request as they are.
inline void RandomLinks(uint64_t seed, model::PlanRequest& request) {
  base::Rng rng(base::Mix64(seed ^ 0x6c696e6b));
  if (rng.Below(2) == 0) {
    for (model::Layer& layer : request.model.layers) {
      for (model::LayerProfile& p : layer.profiles) p.sync_seconds = 0.01 + 2 * p.sync_seconds;
    }
    for (const model::Resource& r : request.resources) {
      const double fixed = rng.Uniform(0, 0.02);
      for (const int64_t bytes : {4096, 16384}) {
        request.allreduces.push_back({.resource_type = r.name,
                                      .ranks = 2,
                                      .bytes = bytes,
                                      .seconds = fixed + static_cast<double>(bytes) * 1e-8});
      }
    }
  }
  if (rng.Below(5) == 0) return;
  for (model::Layer& layer : request.model.layers) {
    if (layer.output_bytes == 0) layer.output_bytes = rng.Uniform(100, 20'000);
  }
  const double slowest = rng.Below(2) == 0 ? 2e6 : 2e7;
  for (const model::Resource& from : request.resources) {
    for (const model::Resource& to : request.resources) {
      if (rng.Below(3) == 0) continue;
      request.links.push_back({.from = from.name,
                               .to = to.name,
                               .latency_seconds = rng.Below(2) == 0 ? 0 : rng.Uniform(0, 2e-3),
                               .bytes_per_second = slowest * rng.Uniform(1, 200)});
    }
  }
}

inline model::PlanRequest RandomRequest(uint64_t seed, const RandomOptions& options) {
  base::Rng rng(seed);
  model::PlanRequest request;
  request.model.name = fmt::format("random-{}", seed);
  const int types = 1 + static_cast<int>(rng.Below(static_cast<uint64_t>(options.most_types)));
  const int layers = 1 + static_cast<int>(rng.Below(static_cast<uint64_t>(options.most_layers)));
  for (int t = 0; t < types; ++t) {
    model::Resource r;
    r.name = fmt::format("t{}", t);
    r.cls = t == 0 ? model::ResourceClass::kCpu : model::ResourceClass::kGpu;
    r.price_per_unit_hour = t == 0 ? rng.Uniform(0.02, 0.3) : rng.Uniform(0.1, 4);
    r.limit = static_cast<int>(rng.Below(static_cast<uint64_t>(options.most_limit) + 1));
    if (rng.Below(3) == 0) r.memory_bytes = rng.Uniform(1e6, 3e7);
    request.resources.push_back(r);
  }
  const bool servers = rng.Below(2) == 0;
  if (servers) request.server_type = request.resources[rng.Below(static_cast<uint64_t>(types))].name;
  if (servers && rng.Below(2) == 0) request.server_memory_bytes = rng.Uniform(5e6, 5e7);
  for (int l = 0; l < layers; ++l) {
    model::Layer layer;
    layer.name = fmt::format("l{}", l);
    layer.weight_bytes = rng.Below(3) == 0 ? 0 : rng.Uniform(1e5, 1e7);
    const bool served = servers && rng.Below(3) == 0;
    for (int t = 0; t < types; ++t) {
      if (t > 0 && rng.Below(10) == 0) continue;  // no profile on this type
      // Some types run a layer without servers while others need servers for it.
      const bool here = served && rng.Below(4) > 0;
      layer.profiles.push_back(RandomProfile(rng, fmt::format("t{}", t), t == 0 ? 1 : rng.Uniform(0.5, 12), here));
    }
    request.model.layers.push_back(layer);
  }
  for (model::LayerProfile& p : request.model.layers[rng.Below(static_cast<uint64_t>(layers))].profiles) {
    p.compute_seconds = std::max(p.compute_seconds, 0.002);  // so that at least one layer has work on every type
  }
  request.training.profile_batch_size = 64;
  request.training.samples_per_epoch = 1e7;
  request.constraints.min_units = 1;
  RandomConstraints(rng, request);
  request.planner.time_budget_seconds = 60;
  if (options.boundaries) RandomBoundaries(seed, request);
  if (options.links) RandomLinks(seed, request);
  return request;
}

}  // namespace medley::sched
