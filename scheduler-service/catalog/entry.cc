#include "scheduler-service/catalog/entry.h"

#include <array>

namespace medley::sched {
namespace {

constexpr std::array<std::string_view, 5> kQualities = {"static", "live", "cached", "fallback", "default"};

}  // namespace

std::string_view ToString(Quality quality) { return kQualities.at(static_cast<size_t>(quality)); }

std::optional<Quality> ParseQuality(std::string_view text) {
  for (size_t i = 0; i < kQualities.size(); ++i) {
    if (kQualities[i] == text) return static_cast<Quality>(i);
  }
  return std::nullopt;
}

std::string KeyOf(const CatalogEntry& entry) {
  if (!entry.offering) return entry.resource_type;
  const std::string key = entry.offering->KeyString();
  return entry.resource_type.empty() ? key : entry.resource_type + "@" + key;
}

}  // namespace medley::sched
