// Parses a page of the Azure Retail Prices API. Pure.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>

#include "scheduler-service/feeds/parsed_prices.h"

namespace medley::sched {

struct AzurePage {
  ParsedPrices prices;
  std::string next;  // URL of the next page; empty for the last page
};

// Returns the hourly prices of Linux virtual machines, on-demand and spot (skuName ends in " Spot"), by region without
// zones. Skips and counts: Windows, "Low Priority", "Dedicated", types other than Consumption, units other than
// "1 Hour", price 0, no armSkuName, and prices that take effect more than a day after `now`. Errors: InvalidArgument
// naming the item and field.
absl::StatusOr<AzurePage> ParseAzurePage(std::string_view body, const Selection& selection, base::WallTime now);

}  // namespace medley::sched
