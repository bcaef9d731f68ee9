// What a core, a GiB and a GPU cost, from the prices of whole instances.
//
// Base prices come from machines without GPUs of the same provider and region: relative least squares,
//   min over c, g >= 0 of sum over machines ((vcpus * c + GiB * g) / P - 1)^2
// over the families whose memory per core differs (c, m and r at AWS). A GPU is then what is left of an instance's
// on-demand price. Spot prices are split by the shares of the on-demand price: what is left of a spot price after
// on-demand cores is nonsense (V100: 0.04 instead of 0.46 USD/h).
//
// Which one is right depends on the question: a planner that buys instances for their GPUs pays the whole instance for
// them (MarginalPerGpu); charging users of one instance needs the split, whose parts add up to the price.
// All pure. USD per hour, GiB = 2^30 bytes.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "scheduler-service/catalog/entry.h"

namespace medley::sched {

struct BasePrices {
  double vcpu = 0;
  double gib = 0;
  double rms_error = 0;  // relative, of the fit
};

struct PricedShape {
  Shape shape;
  double price = 0;  // of the instance, on demand
};

// None when the machines (without GPUs, with a price and a shape) cannot tell cores from memory: fewer than two ratios
// of memory to cores.
std::optional<BasePrices> FitBasePrices(std::span<const PricedShape> machines);

// True for the general families that base prices are taken from: AWS c, m, r; GCP n1, n2, n2d, c2, c3, e2 of the
// standard, highcpu and highmem kind; Azure D, E, F.
bool IsBaseFamily(std::string_view provider, std::string_view instance_type);

// An instance's price in parts; they add up to it. Machines without GPUs: gpu = 0.
struct SplitPrice {
  double cpu = 0;
  double memory = 0;
  double gpu = 0;
  double Total() const { return cpu + memory + gpu; }
};

// gpu = price - vcpus * base.vcpu - GiB * base.gib, at least 0; cores and memory share the rest in the ratio of
// their base prices. `price` > 0, the shape has vcpus.
SplitPrice SplitOnDemand(double price, const Shape& shape, const BasePrices& base);
// In the shares of the on-demand price of the same machine.
SplitPrice SplitSpot(double spot, double on_demand, const Shape& shape, const BasePrices& base);

// Whole GPUs that the instance has: gpus x fraction.
double WholeGpus(const Shape& shape);
// The whole instance's price over its GPUs (cores); 0 when it has none.
double MarginalPerGpu(double price, const Shape& shape);
double MarginalPerCore(double price, const Shape& shape);

// Fractions of a GPU: of a MIG profile ("1g.5gb", "3g.20gb": slices/7; none for any other text), of one of `replicas`
// that time-slice a GPU, of a virtual GPU by its memory.
std::optional<double> MigFraction(std::string_view profile);
double SharedFraction(int replicas);
double MemoryFraction(double memory_bytes, double whole_gpu_bytes);

}  // namespace medley::sched
