// Parses responses of EC2's DescribeSpotPriceHistory: the XML of the query API and the JSON of the AWS command line
// tool. Pure.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>
#include <vector>

#include "scheduler-service/feeds/parsed_prices.h"

namespace medley::sched {

// A price and the time at which it took effect. AWS repeats an unchanged price about every 24 h.
struct SpotRecord {
  std::string zone;
  std::string instance_type;
  std::string product;
  double price = 0;
  base::WallTime since;
};

struct SpotPage {
  std::vector<SpotRecord> records;
  std::string next_token;  // empty for the last page
};

// Errors: InvalidArgument naming the record and field. An empty history gives a page without records.
absl::StatusOr<SpotPage> ParseSpotHistoryXml(std::string_view body);
absl::StatusOr<SpotPage> ParseSpotHistoryJson(std::string_view body);

// Returns one entry for each (zone, instance type): the newest record, and among equally new ones the most expensive.
// The records may have any order. Skips and counts products not in `products`, records that are not selected, and older
// records. Errors: InvalidArgument for a zone that is not an AWS zone.
absl::StatusOr<ParsedPrices> NewestSpotPrices(const std::vector<SpotRecord>& records, const Selection& selection,
                                              const std::vector<std::string>& products);

}  // namespace medley::sched
