// The fuzz targets of the price parsers: no input may crash a parser, and the parsed entries must be valid.
#pragma once

#include <cmath>
#include <string_view>

#include "common/base/status.h"
#include "scheduler-service/feeds/aws_spot_feed_parser.h"
#include "scheduler-service/feeds/azure_retail_parser.h"
#include "scheduler-service/feeds/prometheus_parser.h"
#include "scheduler-service/feeds/spot_history_parser.h"

namespace medley::sched {

inline void CheckPrices(const absl::StatusOr<ParsedPrices>& prices) {
  if (!prices.ok()) return;
  for (const CatalogEntry& entry : prices->entries) {
    MEDLEY_CHECK(std::isfinite(entry.price_per_instance_hour) && entry.price_per_instance_hour > 0, "invalid price");
    MEDLEY_CHECK(entry.offering && !entry.offering->instance_type.empty(), "a price of nothing");
    MEDLEY_CHECK(!KeyOf(entry).empty(), "no key");
  }
}

inline void FuzzPrometheus(std::string_view input) {
  const absl::StatusOr<PromVector> vector = ParsePromVector(input);
  if (!vector.ok()) return;
  const base::WallTime now{base::seconds(1785000000)};
  // Use the same samples for all queries, to combine labels and values of all kinds.
  CheckPrices(KarpenterPrices({*vector, *vector, *vector}, {}, now));
  CheckPrices(OpenCostPrices({*vector, *vector, *vector, *vector, {}}, {}, now));
  CheckPrices(OpenCostPrices({*vector, {}, {}, {}, *vector}, {}, now));
}

inline void FuzzAzureRetail(std::string_view input) {
  const absl::StatusOr<AzurePage> page = ParseAzurePage(input, {}, base::WallTime(base::seconds(1785000000)));
  if (page.ok()) CheckPrices(page->prices);
}

inline void FuzzAwsSpotFeed(std::string_view input) { CheckPrices(ParseAwsSpotFeed(input, {})); }

inline void CheckSpotPage(const absl::StatusOr<SpotPage>& page) {
  if (!page.ok()) return;
  const absl::StatusOr<ParsedPrices> prices = NewestSpotPrices(page->records, {}, {});
  CheckPrices(prices);
  MEDLEY_CHECK(!prices.ok() || prices->entries.size() + static_cast<size_t>(prices->skipped) == page->records.size(),
               "a record is neither taken nor counted");
}

inline void FuzzSpotHistoryXml(std::string_view input) { CheckSpotPage(ParseSpotHistoryXml(input)); }
inline void FuzzSpotHistoryJson(std::string_view input) { CheckSpotPage(ParseSpotHistoryJson(input)); }

}  // namespace medley::sched
