#include "scheduler-service/catalog/units.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace medley::sched {
namespace {

constexpr double kGib = 1024.0 * 1024.0 * 1024.0;

double Gib(const Shape& shape) { return shape.memory_bytes / kGib; }

// The sums in the normal equations of least squares for (v c + g r - 1)^2, with v = vcpus / P and g = GiB / P.
struct Sums {
  double vv = 0, vg = 0, gg = 0, v = 0, g = 0;
  int machines = 0;
};

bool Usable(const PricedShape& m) {
  return m.shape.gpus == 0 && m.shape.vcpus > 0 && m.shape.memory_bytes > 0 && m.price > 0 && std::isfinite(m.price);
}

double RmsError(std::span<const PricedShape> machines, const BasePrices& base) {
  double sum = 0;
  int n = 0;
  for (const PricedShape& m : machines) {
    if (!Usable(m)) continue;
    const double error = (m.shape.vcpus * base.vcpu + Gib(m.shape) * base.gib) / m.price - 1;
    sum += error * error;
    ++n;
  }
  return n > 0 ? std::sqrt(sum / n) : 0;
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// True for c5.xlarge, m7i.large and the like; false for m5zn, c5n and others with a special network, disk or clock
// rate.
bool IsAwsBase(std::string_view type) {
  if (type.size() < 3 || std::string_view("cmr").find(type[0]) == std::string_view::npos || !IsDigit(type[1])) {
    return false;
  }
  const std::string_view family = type.substr(0, type.find('.'));
  size_t digits = 1;
  while (digits < family.size() && IsDigit(family[digits])) ++digits;
  const std::string_view suffix = family.substr(digits);
  return suffix.empty() || suffix == "i" || suffix == "a" || suffix == "g";
}

bool IsGcpBase(std::string_view type) {
  constexpr std::array<std::string_view, 6> kSeries = {"n1-", "n2-", "n2d-", "c2-", "c3-", "e2-"};
  const bool series =
      std::any_of(kSeries.begin(), kSeries.end(), [&](auto s) { return type.substr(0, s.size()) == s; });
  return series && (type.find("-standard-") != type.npos || type.find("-highcpu-") != type.npos ||
                    type.find("-highmem-") != type.npos);
}

bool IsAzureBase(std::string_view type) {
  constexpr std::string_view kPrefix = "Standard_";
  if (type.substr(0, kPrefix.size()) != kPrefix || type.size() < kPrefix.size() + 2) return false;
  const std::string_view rest = type.substr(kPrefix.size());
  return std::string_view("DEF").find(rest[0]) != std::string_view::npos && IsDigit(rest[1]);
}

}  // namespace

std::optional<BasePrices> FitBasePrices(std::span<const PricedShape> machines) {
  Sums s;
  for (const PricedShape& m : machines) {
    if (!Usable(m)) continue;
    const double v = m.shape.vcpus / m.price;
    const double g = Gib(m.shape) / m.price;
    s.vv += v * v;
    s.vg += v * g;
    s.gg += g * g;
    s.v += v;
    s.g += g;
    ++s.machines;
  }
  const double determinant = s.vv * s.gg - s.vg * s.vg;
  if (s.machines < 2 || determinant <= 1e-9 * s.vv * s.gg) return std::nullopt;
  BasePrices base{(s.v * s.gg - s.g * s.vg) / determinant, (s.g * s.vv - s.v * s.vg) / determinant, 0};
  // A price must not be negative. With two unknowns, the constrained optimum is then on the other axis.
  if (base.vcpu < 0) base = {0, s.g / s.gg, 0};
  if (base.gib < 0) base = {s.v / s.vv, 0, 0};
  base.rms_error = RmsError(machines, base);
  return base;
}

bool IsBaseFamily(std::string_view provider, std::string_view instance_type) {
  if (provider == "aws") return IsAwsBase(instance_type);
  if (provider == "gcp") return IsGcpBase(instance_type);
  if (provider == "azure") return IsAzureBase(instance_type);
  return false;
}

SplitPrice SplitOnDemand(double price, const Shape& shape, const BasePrices& base) {
  const double cpu = shape.vcpus * base.vcpu;
  const double memory = Gib(shape) * base.gib;
  SplitPrice out;
  if (shape.gpus > 0) out.gpu = std::max(0.0, price - cpu - memory);
  const double rest = price - out.gpu;
  out.cpu = cpu + memory > 0 ? rest * cpu / (cpu + memory) : rest;
  out.memory = rest - out.cpu;
  return out;
}

SplitPrice SplitSpot(double spot, double on_demand, const Shape& shape, const BasePrices& base) {
  const SplitPrice of = SplitOnDemand(on_demand, shape, base);
  const double share = spot / on_demand;
  return {of.cpu * share, of.memory * share, of.gpu * share};
}

double WholeGpus(const Shape& shape) { return shape.gpus * shape.gpu_fraction; }

}  // namespace medley::sched
