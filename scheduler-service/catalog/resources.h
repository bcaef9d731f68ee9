// Derives resource types from offerings by the rules of the configuration, such as "v100 is one GPU of p3.2xlarge or
// p3.8xlarge, spot, in us-east-1, with a limit of 32 units". Pure.
#pragma once

#include <string>
#include <vector>

#include "scheduler-service/catalog/entry.h"
#include "scheduler-service/catalog/merge.h"
#include "scheduler-service/catalog/selector.h"

namespace medley::sched {

enum class UnitKind { kGpu, kCore, kInstance };
enum class UnitPricing {
  kWhole,  // the instance's whole price divided by its units: the cost of buying one more unit
  kSplit,  // the unit's share of the instance's price (units.h): for instances whose other parts are used as well
};

struct ResourceRule {
  std::string name;
  std::string cls;  // CPU or GPU
  UnitKind unit = UnitKind::kGpu;
  UnitPricing pricing = UnitPricing::kWhole;
  int limit = 0;                  // units
  double memory_bytes = 0;        // of a unit; 0: unlimited
  std::string hardware;           // name of the datasheet
  double units_per_instance = 0;  // 0: taken from the shape
  Selector match;
};

// Returns one entry for each rule that matches an offering: the cheapest available unit, or if none is available the
// cheapest one with available = false. A machine's regional price is ignored if it has zonal prices. A rule for spot
// uses the on-demand price, with quality `default`, for machines without a known spot price. Offerings with an unknown
// number of units are skipped. `offerings` are the published ones.
std::vector<CatalogEntry> DeriveResources(const std::vector<ResourceRule>& rules,
                                          const std::vector<CatalogEntry>& offerings);

}  // namespace medley::sched
