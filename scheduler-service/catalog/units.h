// Computes the prices of a core, a GiB of memory and a GPU from the prices of whole instances.
//
// The base prices c (per core) and g (per GiB) come from the machines without GPUs of the same provider and region, by
// relative least squares over instances with price P,
//   min over c, g >= 0 of sum over machines ((vcpus * c + GiB * g) / P - 1)^2
// over families that differ in memory per core (c, m and r at AWS). The GPU price is the rest of the instance's
// on-demand price. A spot price is split in the proportions of the on-demand price: subtracting on-demand cores from a
// spot price would give wrong results (V100: 0.04 instead of 0.46 USD/h).
//
// Which price to use depends on the purpose. A planner that buys instances for their GPUs pays for the whole instance.
// Charging several users of one instance needs the split, whose parts add up to the price.
// All functions are pure. Prices are in USD per hour; a GiB is 2^30 bytes.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "scheduler-service/catalog/entry.h"

namespace medley::sched {

struct BasePrices {
  double vcpu = 0;
  double gib = 0;
  double rms_error = 0;  // relative error of the fit
};

struct PricedShape {
  Shape shape;
  double price = 0;  // on-demand price of the instance
};

// Uses the machines without GPUs that have a price and a shape. nullopt if they have fewer than two different ratios of
// memory to cores, because then the prices of cores and memory cannot be separated.
std::optional<BasePrices> FitBasePrices(std::span<const PricedShape> machines);

// True for the general-purpose families that base prices come from: AWS c, m, r; GCP n1, n2, n2d, c2, c3, e2 of the
// standard, highcpu and highmem kinds; Azure D, E, F.
bool IsBaseFamily(std::string_view provider, std::string_view instance_type);

// The parts of an instance's price; their sum is the price. gpu = 0 for machines without GPUs.
struct SplitPrice {
  double cpu = 0;
  double memory = 0;
  double gpu = 0;
  double Total() const { return cpu + memory + gpu; }
};

// gpu = price - vcpus * base.vcpu - GiB * base.gib, at least 0. Cores and memory share the rest in proportion to their
// base prices. `price` must be positive, and the shape must have vcpus.
SplitPrice SplitOnDemand(double price, const Shape& shape, const BasePrices& base);
// Splits a spot price in the proportions of the on-demand price of the same machine.
SplitPrice SplitSpot(double spot, double on_demand, const Shape& shape, const BasePrices& base);

// The number of whole GPUs of the instance: gpus * gpu_fraction.
double WholeGpus(const Shape& shape);

}  // namespace medley::sched
