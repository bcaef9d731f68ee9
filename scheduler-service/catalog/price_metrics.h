// Exports the published prices as gauges. Internal to catalog/.
#pragma once

#include <vector>

#include "common/metrics/metrics.h"
#include "scheduler-service/catalog/catalog.h"

namespace medley::sched {

// Exports the prices of resource types, and those of offerings if the catalog has at most 256 entries: a cloud's whole
// price list would make thousands of series. `shown` has the labels of the exported series; the call removes the series
// that are no longer published and updates `shown`.
void ShowPriceMetrics(const Catalog& catalog, metrics::Registry& metrics, std::vector<metrics::Labels>& shown);

}  // namespace medley::sched
