// Resource types that the configuration derives from offerings: "a v100 is a GPU of p3.2xlarge or p3.8xlarge, spot, in
// us-east-1; there are 32 of them". Pure.
#pragma once

#include <string>
#include <vector>

#include "scheduler-service/catalog/entry.h"
#include "scheduler-service/catalog/merge.h"
#include "scheduler-service/catalog/selector.h"

namespace medley::sched {

enum class UnitKind { kGpu, kCore, kInstance };
enum class UnitPricing {
  kWhole,  // the instance's price over its units: what buying one more unit costs
  kSplit,  // the unit's share of it (units.h): what a unit of an instance that is paid for anyway is worth
};

struct ResourceRule {
  std::string name;
  std::string cls;  // CPU or GPU
  UnitKind unit = UnitKind::kGpu;
  UnitPricing pricing = UnitPricing::kWhole;
  int limit = 0;                  // units
  double memory_bytes = 0;        // of a unit; 0: not bounded
  std::string hardware;           // datasheet
  double units_per_instance = 0;  // 0: from the shape
  Selector match;
};

// One entry for each rule that some offering fits, with the cheapest available unit; where none is available, the
// cheapest one with available = false. Zonal prices hide the regional price of the same machine. A rule that asks for
// spot takes the on-demand price, quality default, of machines for which no spot price is known. Offerings whose
// shape does not tell how many units they have are passed over. `offerings`: as published.
std::vector<CatalogEntry> DeriveResources(const std::vector<ResourceRule>& rules,
                                          const std::vector<CatalogEntry>& offerings);

}  // namespace medley::sched
