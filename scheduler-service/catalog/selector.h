// Selects the offerings to which a rule of the configuration applies, and applies price overrides. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scheduler-service/catalog/entry.h"

namespace medley::sched {

// An entry matches if every non-empty list has a pattern that matches the field; `*` in a pattern matches any text.
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

// An entry without an offering matches only selectors without patterns for offering fields.
bool Fits(const Selector& selector, const CatalogEntry& entry);

// A price override, as in Karpenter's NodeOverlay: for a contract, a discount or a penalty.
struct Override {
  Selector match;
  double price = 0;   // USD per instance and hour, replaces the source's price; 0: use `factor` and `add`
  double factor = 1;  // 0.9 for "-10%"
  double add = 0;     // USD per instance and hour; 0.05 for "+0.05"
  int weight = 0;     // only the matching override with the largest weight applies; among equals the first
};

// Parses "-10%" into `factor` or "+0.05" into `add`. False for any other text, and for -100 % or less.
bool ParseAdjustment(std::string_view text, Override& out);

// Applies the matching override with the largest weight. The resulting price is at least 0.0001 USD/h.
void ApplyOverrides(const std::vector<Override>& overrides, CatalogEntry& entry);

}  // namespace medley::sched
