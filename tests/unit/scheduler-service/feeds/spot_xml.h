// Builds responses of EC2's DescribeSpotPriceHistory in the documented format.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "scheduler-service/feeds/spot_history_parser.h"

namespace medley::sched {

inline std::string SpotXml(const std::vector<SpotRecord>& records, const std::string& next_token) {
  std::string items;
  for (const SpotRecord& record : records) {
    std::string since = base::FormatTime(record.since);
    since.insert(since.size() - 1, ".000");
    items += fmt::format(
        "    <item>\n      <instanceType>{}</instanceType>\n      "
        "<productDescription>{}</productDescription>\n"
        "      <spotPrice>{:.6f}</spotPrice>\n      <timestamp>{}</timestamp>\n"
        "      <availabilityZone>{}</availabilityZone>\n    </item>\n",
        record.instance_type, record.product, record.price, since, record.zone);
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<DescribeSpotPriceHistoryResponse xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\">\n"
      "  <requestId>59dbff89-35bd-4eac-99ed-be587EXAMPLE</requestId>\n  <spotPriceHistorySet>\n{}"
      "  </spotPriceHistorySet>\n  "
      "<nextToken>{}</nextToken>\n</DescribeSpotPriceHistoryResponse>\n",
      items, next_token);
}

}  // namespace medley::sched
