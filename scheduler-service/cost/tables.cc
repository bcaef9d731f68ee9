// Problem: where a stage has its embedding tables, and what that costs.
#include <algorithm>
#include <cmath>

#include "common/program/table_place.h"
#include "scheduler-service/cost/problem.h"

namespace medley::sched {

model::Tables Problem::TablesIn(int first, int last, int t) const {
  const Prefix& p = prefix(t);
  const auto begin = std::ranges::lower_bound(p.tables, first), end = std::ranges::upper_bound(p.tables, last);
  if (begin >= end) return {};
  if (!rows_on_device()) return {.place = model::TablePlace::kHost};
  const auto layer = [&](int i) -> const model::Layer& { return request().model.layers[static_cast<size_t>(i)]; };
  // Rows have no gradients beside them: those of a step alone are kept.
  const double state = std::max(1.0, request().training.state_factor - 1);
  double bytes = 0;
  for (auto i = begin; i != end; ++i) bytes += state * layer(*i).weight_bytes;
  double memory = type(t).device_memory_bytes;
  if (type(t).memory_bytes > 0) memory = std::min(memory, type(t).memory_bytes);
  const program::PlacedTables placed = program::PlaceTables(bytes, std::max(0.0, memory - LocalBytes(first, last, t)));
  model::Tables tables{.place = placed.place};
  if (placed.place != model::TablePlace::kCache) return tables;
  tables.cache_bytes = static_cast<int64_t>(placed.cache_bytes);
  const double share = bytes > 0 ? placed.cache_bytes / bytes : 1;
  double hits = 0, weight = 0;  // weighted by what a miss of each table costs
  for (auto i = begin; i != end; ++i) {
    const model::TablesOnDevice& measured = *p.measured[static_cast<size_t>(i - p.tables.begin())];
    const double cost = measured.missed_seconds > 0 ? measured.missed_seconds : 1e-12;
    hits += cost * model::HitsOf(measured.cached, share);
    weight += cost;
  }
  tables.hits = hits / weight;
  return tables;
}

double Problem::MissSeconds(int first, int last, int t, const model::Tables& tables) const {
  if (tables.place != model::TablePlace::kCache) return 0;
  const Prefix& p = prefix(t);
  double seconds = 0;
  for (auto i = std::ranges::lower_bound(p.tables, first); i != p.tables.end() && *i <= last; ++i) {
    seconds += p.measured[static_cast<size_t>(i - p.tables.begin())]->missed_seconds;
  }
  return (1 - tables.hits) * seconds;
}

}  // namespace medley::sched
