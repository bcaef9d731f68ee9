// Which offerings a rule of the configuration speaks of. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scheduler-service/catalog/entry.h"

namespace medley::sched {

// Every list that is not empty must have a pattern that fits; `*` in a pattern stands for any text.
struct Selector {
  std::vector<std::string> provider;
  std::vector<std::string> region;
  std::vector<std::string> zone;
  std::vector<std::string> instance_type;
  std::vector<std::string> capacity_type;
  std::vector<std::string> gpu_model;
  std::vector<std::string> source;
  std::vector<std::string> resource_type;
};

bool FitsPattern(std::string_view pattern, std::string_view text);

// An entry without an offering fits only a selector that asks nothing of offerings.
bool Fits(const Selector& selector, const CatalogEntry& entry);

// A price of one's own, as Karpenter's NodeOverlay: a contract, a discount, a penalty.
struct Override {
  Selector match;
  double price = 0;   // USD per instance and hour in place of the source's; 0: adjust it
  double factor = 1;  // "-10%": 0.9
  double add = 0;     // USD per instance and hour: "+0.05"
  int weight = 0;     // of the overrides that fit an entry, the heaviest is applied, of equals the first
};

// "-10%", "+0.05": into factor or add. False for any other text, and for what would not leave a price (-100 %).
bool ParseAdjustment(std::string_view text, Override& out);

// What the heaviest override that fits makes of the entry's prices; never below 0.0001 USD/h.
void ApplyOverrides(const std::vector<Override>& overrides, CatalogEntry& entry);

}  // namespace medley::sched
