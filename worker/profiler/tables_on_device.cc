#include "worker/profiler/tables_on_device.h"

#include <algorithm>
#include <array>
#include <span>

#include "common/base/status.h"

namespace medley::worker {
namespace {

constexpr std::array<double, 7> kShares = {0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5};
// A cache that has nearly every row says nothing of those that it lacks.
constexpr double kLeastMisses = 0.05;

bool HasTable(const Graph& graph, model::OperationRange range) {
  return std::any_of(graph.operations.begin() + range.first, graph.operations.begin() + range.end,
                     [](const Operation& operation) { return operation.HasTable(); });
}

// How often each key is in `keys`, most used first; sorts `keys`.
struct Used {
  uint64_t key = 0;
  int64_t times = 0;
};
std::vector<Used> CountKeys(std::vector<uint64_t>& keys) {
  std::ranges::sort(keys);
  std::vector<Used> used;
  for (const uint64_t key : keys) {
    if (used.empty() || used.back().key != key) used.push_back({key, 0});
    ++used.back().times;
  }
  return used;
}

}  // namespace

absl::StatusOr<std::vector<std::optional<model::TablesOnDevice>>> TimeTablesOnDevice(StepTimerContext context,
                                                                                     int samples, int micros,
                                                                                     double budget) {
  std::vector<std::optional<model::TablesOnDevice>> all(context.graph.operations.size());
  if (context.device == nullptr || context.graph.imported != nullptr) return all;
  for (const model::OperationRange& part :
       MeasuredTogether(context.graph, StateFactor(context.optimizer.kind), samples)) {
    if (!HasTable(context.graph, part)) continue;
    const double each = budget * static_cast<double>(part.end - part.first);
    context.tables = {.place = model::TablePlace::kDevice};
    MEDLEY_ASSIGN_OR_RETURN(const std::vector<OperationCost> whole, TimeSteps(context, part, samples, micros, each));
    // No row stays that the open steps do not use: nearly all of them are missed.
    context.tables = {.place = model::TablePlace::kCache, .cache_bytes = 1};
    MEDLEY_ASSIGN_OR_RETURN(const std::vector<OperationCost> cached, TimeSteps(context, part, samples, micros, each));
    for (size_t i = 0; i < whole.size(); ++i) {
      if (whole[i].tables.place != model::TablePlace::kDevice) continue;
      model::TablesOnDevice& tables = all[static_cast<size_t>(part.first) + i].emplace();
      tables.seconds = whole[i].seconds;
      const TableCounts& counts = cached[i].tables;
      if (counts.used_rows == 0) continue;
      const double misses = 1 - static_cast<double>(counts.found_rows) / static_cast<double>(counts.used_rows);
      tables.missed_seconds = std::max(0.0, cached[i].seconds - whole[i].seconds) / std::max(misses, kLeastMisses);
    }
  }
  return all;
}

std::vector<model::CachedRows> CachedRowsOf(const BatchView& data, const SampleShape& shape, const ParameterSpec& table,
                                            int batch) {
  if (table.drawn > 0 || table.fields == 0 || batch < 1) return {};
  const auto width = static_cast<size_t>(shape.fields), fields = static_cast<size_t>(table.fields);
  const int64_t batches = std::min<int64_t>(data.samples, kMostCountedIds / table.fields) / batch;
  if (batches < 2) return {};
  std::array<std::vector<uint64_t>, 2> keys;  // of even and of odd batches
  std::vector<uint64_t> of_batch;
  for (int64_t b = 0; b < batches; ++b) {
    of_batch.clear();
    for (int64_t sample = b * batch; sample < (b + 1) * batch; ++sample) {
      const int32_t* const ids = data.ids.data() + static_cast<size_t>(sample) * width + table.first_field;
      for (size_t f = 0; f < fields; ++f) of_batch.push_back(static_cast<uint64_t>(ids[f]));
    }
    std::ranges::sort(of_batch);
    const auto end = std::unique(of_batch.begin(), of_batch.end());
    std::vector<uint64_t>& to = keys[static_cast<size_t>(b % 2)];
    to.insert(to.end(), of_batch.begin(), end);
  }
  std::vector<Used> ranked = CountKeys(keys[0]);
  const std::vector<Used> later = CountKeys(keys[1]);
  std::ranges::stable_sort(ranked, std::ranges::greater(), &Used::times);
  const auto all = static_cast<double>(keys[1].size());
  std::vector<model::CachedRows> cached;
  size_t counted = 0;
  double hits = 0;
  for (const double share : kShares) {
    const auto rows = static_cast<size_t>(share * static_cast<double>(table.rows));
    for (; counted < std::min(rows, ranked.size()); ++counted) {
      const auto found = std::ranges::lower_bound(later, ranked[counted].key, {}, &Used::key);
      if (found != later.end() && found->key == ranked[counted].key) hits += static_cast<double>(found->times);
    }
    cached.push_back({share, hits / all});
  }
  return cached;
}

}  // namespace medley::worker
