// AWS's public spot price feed, spot.json or spot.js (`callback(...);`). Pure.
#pragma once

#include <absl/status/statusor.h>

#include <string_view>

#include "scheduler-service/feeds/parsed_prices.h"

namespace medley::sched {

// Linux prices, regional; a local zone ("us-east-1-atl-1") becomes the zone of its region, a
// region's old name
// ("us-east") its present one. Left out and counted: "N/A" in any form. A size that is listed twice
// gives two entries. Errors: InvalidArgument naming region, size and value: a price that is none or
// 0, a currency other than USD, a rate other than per hour, no region at all.
absl::StatusOr<ParsedPrices> ParseAwsSpotFeed(std::string_view body, const Selection& selection);

}  // namespace medley::sched
