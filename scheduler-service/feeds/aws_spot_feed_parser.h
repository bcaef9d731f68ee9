// Parses AWS's public spot price feed, spot.json or spot.js (`callback(...);`). Pure.
#pragma once

#include <absl/status/statusor.h>

#include <string_view>

#include "scheduler-service/feeds/parsed_prices.h"

namespace medley::sched {

// Returns the Linux prices of regions. A local zone ("us-east-1-atl-1") becomes a zone of its region; an old region
// name ("us-east") becomes the current one. Prices "N/A" are skipped and counted. An instance size that is listed twice
// gives two entries. Errors: InvalidArgument naming region, size and value, for an invalid or zero price, a currency
// other than USD, a rate other than per hour, or no regions.
absl::StatusOr<ParsedPrices> ParseAwsSpotFeed(std::string_view body, const Selection& selection);

}  // namespace medley::sched
