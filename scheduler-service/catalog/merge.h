// What all sources together say at a moment: one entry a key. Pure.
//
// Of several sources that have a key: one whose price has not gone stale beyond use before one whose has; then the
// higher priority; then the one named first. An offering that any source with a fresh answer says is not to be had is
// not available, whichever source gives the price. Shapes come from whoever knows the machine.
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

// Entries with the price that is worth believing now (staleness applied) and quality, availability and shape filled in.
// Offerings with a shape and no units of their own get them: GPUs, or cores for machines without.
MergedPrices Merge(const std::vector<SourcePrices>& sources, const MachineShapes& machines,
                   const StalenessOptions& staleness, base::WallTime now);

// The best on-demand price of the machine in its region over all sources: of its zone, or of the region.
std::optional<double> FindOnDemand(const std::vector<SourcePrices>& sources, const model::Offering& offering);

}  // namespace medley::sched
