// Merges the accepted prices of all sources into one entry per key. Pure.
//
// If several sources have a key, a price of quality `fallback` loses against any other; then the source with the higher
// priority wins; then the one configured first. An offering is unavailable if any source with a price better than
// `fallback` reports it so, whichever source supplies the price. Shapes come from the entry itself, the configuration
// or any source that describes the machine.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "scheduler-service/catalog/acceptance.h"
#include "scheduler-service/catalog/staleness.h"

namespace medley::sched {

using MachineShapes = std::map<std::pair<std::string, std::string>, Shape>;  // by provider and instance type

struct SourcePrices {
  const AcceptedPrices* prices = nullptr;
  int priority = 0;
  base::nanoseconds ttl{};
  base::nanoseconds on_demand_ttl{};
};

using MergedPrices = std::map<std::string, CatalogEntry>;  // by KeyOf

// Returns the entries with staleness applied and with quality, availability and shape filled in. An offering with a
// shape but without units_per_instance gets its number of GPUs, or of cores if it has no GPU.
MergedPrices Merge(const std::vector<SourcePrices>& sources, const MachineShapes& machines,
                   const StalenessOptions& staleness, base::WallTime now);

// The on-demand price of the machine in its zone, or else in its region, from the source with the highest priority.
std::optional<double> FindOnDemand(const std::vector<SourcePrices>& sources, const model::Offering& offering);

}  // namespace medley::sched
