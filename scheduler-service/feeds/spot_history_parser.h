// Answers of EC2's DescribeSpotPriceHistory: the query API's XML and what the command line tool
// prints. Pure.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>
#include <vector>

#include "scheduler-service/feeds/parsed_prices.h"

namespace medley::sched {

// A price and the time from which it was in force. AWS repeats one that does not change every 24 h
// or so.
struct SpotRecord {
  std::string zone;
  std::string instance_type;
  std::string product;
  double price = 0;
  base::WallTime since;
};

struct SpotPage {
  std::vector<SpotRecord> records;
  std::string next_token;  // empty: the last page
};

// Errors: InvalidArgument naming the record and field; an empty history is a page without records.
absl::StatusOr<SpotPage> ParseSpotHistoryXml(std::string_view body);
absl::StatusOr<SpotPage> ParseSpotHistoryJson(std::string_view body);

// One entry for each (zone, instance type): the newest record, of equally new ones the dearer; in
// any order of records. Left out and counted: other products than `products`, what is not selected,
// records that are not the newest. Errors: InvalidArgument for a zone that is none of AWS.
absl::StatusOr<ParsedPrices> NewestSpotPrices(const std::vector<SpotRecord>& records, const Selection& selection,
                                              const std::vector<std::string>& products);

}  // namespace medley::sched
