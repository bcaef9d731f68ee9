#include "scheduler-service/simulate/profile_quotas.h"

#include <algorithm>
#include <cmath>

#include "common/model/model.h"
#include "common/model/profile.h"

namespace medley::sched {
namespace {

constexpr double kLeastPart = 1e-3;  // of the time that a quota lets a unit compute

}  // namespace

std::map<std::string, double> QuotaParts(const model::Profile& profile) {
  struct Sums {
    double burst = 0, all = 0;
  };
  std::map<std::string, Sums> sums;
  for (const model::Layer& layer : profile.model.layers) {
    for (const model::LayerProfile& times : layer.profiles) {
      const double own = times.compute_seconds - times.sync_processor_seconds;
      if (times.burst_seconds <= 0 || own <= 0) continue;
      Sums& pool = sums[times.resource_type];
      pool.burst += std::min(times.burst_seconds, own);
      pool.all += own;
    }
  }
  std::map<std::string, double> parts;
  for (const auto& [pool, of] : sums) parts[pool] = std::clamp(of.burst / of.all, kLeastPart, 1.0);
  // A limit below one core says it exactly: single runs may be longer than a period, and be held up too.
  for (const model::UnitCpus& unit : profile.units) {
    const auto found = parts.find(unit.resource_type);
    if (found != parts.end() && unit.cores > 0 && unit.cores < 1) found->second = std::max(kLeastPart, unit.cores);
  }
  return parts;
}

bool HasQuota(const Durations& durations) {
  return std::ranges::any_of(durations.quotas, [](const Durations::Quota& quota) { return quota.period > 0; });
}

void DrawPhases(int number, Durations& durations) {
  constexpr double kGolden = 0.6180339887498949;  // multiples of it are evenly spread modulo 1
  for (size_t d = 0; d < durations.quotas.size(); ++d) {
    const double turn = kGolden * (static_cast<double>(d) + 1) * (number + 1);
    durations.quotas[d].phase = durations.quotas[d].period * (turn - std::floor(turn));
  }
}

}  // namespace medley::sched
