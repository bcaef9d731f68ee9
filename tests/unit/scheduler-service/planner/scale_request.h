// Generates planning requests of any size with realistic numbers: layers like those of CTRDNN, on perturbed CPU cores
// and GPUs. The same seed gives the same request.
#pragma once

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "common/base/rng.h"
#include "common/model/model.h"
#include "common/model/planning.h"
#include "common/model/resource.h"

namespace medley::sched {

struct ScaleOptions {
  int layers = 16;
  int types = 2;
  double spread =
      0.3;  // standard deviation of the logarithm of the types' speeds and prices; small: nearly equal types
  double noise = 0.03;  // relative noise of each layer's seconds on each type
  int cpu_limit = 480;
  int gpu_limit = 32;
  double min_throughput = 100'000;
  bool servers = true;
  int lookup_every = 0;  // an extra embedding, cheap on CPUs, after this many layers; 0: none
  bool divides = false;  // all work divides by units, so every throughput costs nearly the same
};

class ScaleGenerator {
 public:
  ScaleGenerator(uint64_t seed, const ScaleOptions& options) : rng_(seed), options_(options) {}

  model::PlanRequest Make() {
    model::PlanRequest request;
    request.model.name = fmt::format("scale-{}x{}", options_.layers, options_.types);
    for (int t = 0; t < options_.types; ++t) AddType(t, request);
    double width = 936;
    for (int l = 0; l < options_.layers; ++l) {
      model::Layer layer;
      layer.name = fmt::format("l{}", l);
      const bool embedding = l == 0 || (options_.lookup_every > 0 && l % options_.lookup_every == 0);
      const double next = embedding ? width : std::max(8.0, std::round(2048 * std::pow(0.82, l)));
      layer.weight_bytes = l == 0 ? 3.6e7 : 4 * width * next;
      for (const Machine& machine : machines_) layer.profiles.push_back(Profile(machine, embedding, width, next));
      request.model.layers.push_back(layer);
      width = next;
    }
    request.training.profile_batch_size = kBatch;
    request.training.samples_per_epoch = 4.5e7;
    request.constraints.min_throughput = options_.min_throughput;
    request.constraints.min_units = 1;
    if (options_.servers) request.server_type = "t0";
    return request;
  }

 private:
  static constexpr double kBatch = 4096;

  struct Machine {
    std::string name;
    double flops;      // operations per second of a unit
    double overhead;   // seconds per layer
    double bandwidth;  // bytes/s of memory reached by look-ups
    double network;    // bytes/s
    double parallel;   // share of computation that divides by units
  };

  double Normal() {
    const double radius = std::sqrt(-2 * std::log(1 - rng_.Uniform()));
    return radius * std::cos(6.283185307179586 * rng_.Uniform());
  }
  double Factor(double deviation) { return std::exp(deviation * Normal()); }

  // Every fourth type is a CPU core, the others are GPUs.
  void AddType(int t, model::PlanRequest& request) {
    const bool cpu = t % 4 == 0;
    const double speed = Factor(options_.spread);
    machines_.push_back({fmt::format("t{}", t), (cpu ? 3e10 : 7e12) * speed, cpu ? 3e-5 : 1.2e-4,
                         (cpu ? 5e9 : 4e11) * Factor(options_.spread), (cpu ? 4e8 : 4e9) * Factor(options_.spread),
                         cpu ? 0.99 : 0.95});
    model::Resource r;
    r.name = machines_.back().name;
    r.cls = cpu ? model::ResourceClass::kCpu : model::ResourceClass::kGpu;
    r.price_per_unit_hour = (cpu ? 0.04 : 2.42) * std::pow(speed, 0.9) * Factor(options_.spread / 3);
    r.limit = cpu ? options_.cpu_limit : options_.gpu_limit;
    if (!cpu) r.memory_bytes = 1.6e10;
    request.resources.push_back(r);
  }

  model::LayerProfile Profile(const Machine& machine, bool embedding, double width, double next) {
    model::LayerProfile p;
    p.resource_type = machine.name;
    const double work = embedding ? kBatch * width * 12 / machine.bandwidth : kBatch * 6 * width * next / machine.flops;
    p.compute_seconds = (work + machine.overhead) * Factor(options_.noise);
    p.compute_parallel = options_.divides ? 1 : machine.parallel;
    const double weights = embedding ? kBatch * width * 4 : 4 * width * next;
    p.sync_seconds = 2 * weights / machine.network * Factor(options_.noise);
    p.transfer_seconds = 2 * kBatch * next * 4 / machine.network * Factor(options_.noise);
    p.comm_parallel = options_.divides ? 1 : 0.9;
    p.server_seconds = embedding && options_.servers ? 0.0053 * Factor(options_.noise) : 0;
    return p;
  }

  base::Rng rng_;
  const ScaleOptions options_;
  std::vector<Machine> machines_;
};

inline model::PlanRequest ScaleRequest(uint64_t seed, const ScaleOptions& options) {
  return ScaleGenerator(seed, options).Make();
}

// Links between all pairs of types, no two alike, in both directions, and what passes over them.
inline void AddUnlikeLinks(uint64_t seed, model::PlanRequest& request) {
  base::Rng rng(base::Mix64(seed));
  for (size_t l = 0; l < request.model.layers.size(); ++l) {
    request.model.layers[l].output_bytes = 4 * std::max(8.0, std::round(2048 * std::pow(0.82, static_cast<double>(l))));
  }
  for (const model::Resource& from : request.resources) {
    for (const model::Resource& to : request.resources) {
      request.links.push_back({.from = from.name,
                               .to = to.name,
                               .latency_seconds = std::exp(rng.Uniform(std::log(1e-5), std::log(5e-4))),
                               .bytes_per_second = std::exp(rng.Uniform(std::log(1e8), std::log(1e10)))});
    }
  }
}

}  // namespace medley::sched
