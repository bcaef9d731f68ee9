// A page of the Azure Retail Prices API. Pure.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>

#include "scheduler-service/feeds/parsed_prices.h"

namespace medley::sched {

struct AzurePage {
  ParsedPrices prices;
  std::string next;  // URL of the next page; empty: this is the last one
};

// Linux virtual machines by the hour, on demand and spot (skuName ends in " Spot"; regional, no
// zones). Left out and counted: Windows, "Low Priority", "Dedicated", anything but Consumption by
// "1 Hour", price 0, no armSkuName, a price that takes effect more than a day after `now`. Errors:
// InvalidArgument naming the item and field.
absl::StatusOr<AzurePage> ParseAzurePage(std::string_view body, const Selection& selection, base::WallTime now);

}  // namespace medley::sched
