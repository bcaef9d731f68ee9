#include "common/model/table_place.h"

#include <algorithm>

namespace medley::model {

double HitsOf(const std::vector<CachedRows>& cached, double share) {
  if (share >= 1) return 1;
  CachedRows below;
  for (const CachedRows& above : cached) {
    if (above.share >= share) {
      const double part = above.share > below.share ? (share - below.share) / (above.share - below.share) : 0;
      return std::clamp(below.hits + std::max(0.0, part) * (above.hits - below.hits), 0.0, 1.0);
    }
    below = above;
  }
  return std::clamp(below.hits + (share - below.share) / (1 - below.share) * (1 - below.hits), 0.0, 1.0);
}

std::string_view NameOf(TablePlace place) {
  switch (place) {
    case TablePlace::kUnspecified:
      return "";
    case TablePlace::kDevice:
      return "Device";
    case TablePlace::kCache:
      return "Cache";
    case TablePlace::kHost:
      return "Host";
  }
  return "";
}

}  // namespace medley::model
