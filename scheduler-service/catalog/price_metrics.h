// Published prices as gauges. Internal to catalog/.
#pragma once

#include <vector>

#include "common/metrics/metrics.h"
#include "scheduler-service/catalog/catalog.h"

namespace medley::sched {

// Of resource types; of offerings as well when they are few, so that a cloud's whole list does not become thousands of
// series. `shown`: the labels that are there, to take those away that are gone.
void ShowPriceMetrics(const Catalog& catalog, metrics::Registry& metrics, std::vector<metrics::Labels>& shown);

}  // namespace medley::sched
