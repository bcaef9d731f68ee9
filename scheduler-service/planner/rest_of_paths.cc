#include "scheduler-service/planner/rest_of_paths.h"

namespace medley::sched {

void RestOfPaths::AllocatePairs() {
  for (size_t layer = 0; layer < joints_.size(); ++layer) {
    Pairs& pairs = pairs_[layer];
    if (!joints_[layer].before && !joints_[layer].after) {
      pairs = {};
      continue;
    }
    pairs.any.assign(types_, {});
    pairs.some.assign(joints_[layer].before ? types_ * types_ : 0, {});
    pairs.of_type.assign(types_, {});
    pairs.known.assign(types_, 0);
  }
}

// All edges that begin where this one ends have been offered.
LeastSum RestOfPaths::AfterEdge(const StageEdge& edge, const std::vector<Beside>& besides) {
  const size_t layer = Index(edge.last + 1), before = Index(edge.type);
  Pairs& pairs = pairs_[layer];
  if (pairs.any.empty()) return begin_[layer];
  const TypeSet after = BesideOf(edge, besides).after;
  const bool any = after == kAllTypes;
  if (any && pairs.known[before] != 0) return pairs.of_type[before];
  LeastSum least;
  for (size_t t = 0; t < types_; ++t) {
    if (!Has(after, static_cast<int>(t))) continue;
    least.Offer(pairs.any[t].least, pairs.any[t].stage);
    if (pairs.some.empty()) continue;
    const LeastSum& some = pairs.some[before * types_ + t];
    least.Offer(some.least, some.stage);
  }
  if (any) {
    pairs.of_type[before] = least;
    pairs.known[before] = 1;
  }
  return least;
}

void RestOfPaths::OfferToPairs(const StageEdge& edge, const std::vector<Beside>& besides, double weight, int index) {
  const size_t type = Index(edge.type);
  Pairs& pairs = pairs_[Index(edge.first)];
  if (pairs.any.empty()) return;
  const TypeSet before = BesideOf(edge, besides).before;
  if (before == kAllTypes) {
    pairs.any[type].Offer(weight, index);
    return;
  }
  for (size_t t = 0; t < types_; ++t) {
    if (Has(before, static_cast<int>(t))) pairs.some[t * types_ + type].Offer(weight, index);
  }
}

}  // namespace medley::sched
