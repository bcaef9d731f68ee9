// Measures what layers with embedding tables take where a device has the tables, whole or as a cache of rows, and which
// part of a step's rows a cache has. The functions share no state.
#pragma once

#include <absl/status/statusor.h>

#include <optional>
#include <vector>

#include "common/model/table_place.h"
#include "worker/data/batch.h"
#include "worker/params/parameter_spec.h"
#include "worker/profiler/step_timer.h"

namespace medley::worker {

// By operation; nullopt: it has no table, or its block keeps none on the device. In steps of `samples`, for about
// `budget` seconds for each operation and place. Errors: those of TimeSteps.
absl::StatusOr<std::vector<std::optional<model::TablesOnDevice>>> TimeTablesOnDevice(StepTimerContext context,
                                                                                     int samples, int micros,
                                                                                     double budget);

// How many of a batch's distinct rows are among the most used ones: those of every second batch, counted in the others.
// So rows that are used once are no hits. Of at most kMostCountedIds ids, from the first on; empty where rows are drawn
// at random, or for fewer than two batches: then a cache has as many of the rows as its share. Pure.
constexpr int64_t kMostCountedIds = int64_t{8} << 20;
std::vector<model::CachedRows> CachedRowsOf(const BatchView& data, const SampleShape& shape, const ParameterSpec& table,
                                            int batch);

}  // namespace medley::worker
