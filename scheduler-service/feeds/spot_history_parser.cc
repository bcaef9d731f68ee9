#include "scheduler-service/feeds/spot_history_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/aws/xml_reader.h"
#include "common/base/status.h"
#include "common/document/reader.h"
#include "scheduler-service/feeds/answer_limits.h"

namespace medley::sched {
namespace {

// The five fields of a record as text, from XML or JSON.
struct RawRecord {
  std::string zone, instance_type, product, price, since;
};

absl::StatusOr<SpotRecord> ToRecord(const RawRecord& raw, size_t index) {
  const std::string where = fmt::format("record {}", index);
  if (raw.zone.empty()) return base::InvalidArgument("{}: no availability zone", where);
  if (raw.instance_type.empty()) return base::InvalidArgument("{}: no instance type", where);
  const absl::StatusOr<double> price = ParsePrice(raw.price);
  if (!price.ok()) return base::Annotate(price.status(), where + ": spot price");
  const absl::StatusOr<base::WallTime> since = base::ParseTime(raw.since);
  if (!since.ok()) return base::InvalidArgument("{}: timestamp '{}' is not a time", where, Quoted(raw.since));
  return SpotRecord{raw.zone, raw.instance_type, raw.product, *price, *since};
}

}  // namespace

absl::StatusOr<SpotPage> ParseSpotHistoryXml(std::string_view body) {
  const std::string root = "DescribeSpotPriceHistoryResponse";
  const std::string set = root + "/spotPriceHistorySet", item = set + "/item";
  SpotPage page;
  RawRecord raw;
  bool saw_set = false;
  const std::map<std::string, std::string RawRecord::*> fields = {{item + "/availabilityZone", &RawRecord::zone},
                                                                  {item + "/instanceType", &RawRecord::instance_type},
                                                                  {item + "/productDescription", &RawRecord::product},
                                                                  {item + "/spotPrice", &RawRecord::price},
                                                                  {item + "/timestamp", &RawRecord::since}};
  const auto on_start = [&](const std::string& path) -> absl::Status {
    if (path.find('/') == std::string::npos && path != root) {
      return base::InvalidArgument("<{}>, want <{}>", Quoted(path), root);
    }
    if (path == item) raw = RawRecord();
    saw_set = saw_set || path == set;
    return absl::OkStatus();
  };
  const auto on_end = [&](const std::string& path, std::string_view text) -> absl::Status {
    if (const auto field = fields.find(path); field != fields.end()) raw.*(field->second) = std::string(text);
    if (path == root + "/nextToken") page.next_token = std::string(text);
    if (path == item) {
      MEDLEY_ASSIGN_OR_RETURN(SpotRecord record, ToRecord(raw, page.records.size()));
      page.records.push_back(std::move(record));
    }
    return absl::OkStatus();
  };
  MEDLEY_RETURN_IF_ERROR(aws::ReadXml(body, on_start, on_end));
  if (!saw_set) return base::InvalidArgument("no <spotPriceHistorySet>");
  return page;
}

absl::StatusOr<SpotPage> ParseSpotHistoryJson(std::string_view body) {
  MEDLEY_ASSIGN_OR_RETURN(const nlohmann::json tree, document::ParseJson(body, kAnswerLimits));
  const document::Reader answer(tree);
  answer.Require({"SpotPriceHistory"});
  SpotPage page;
  page.next_token = answer.String("NextToken");
  const std::vector<document::Reader> history = answer.List("SpotPriceHistory");
  page.records.reserve(history.size());
  for (size_t i = 0; i < history.size(); ++i) {
    const document::Reader& item = history[i];
    item.Require({"AvailabilityZone", "InstanceType", "SpotPrice", "Timestamp"});
    RawRecord raw;
    raw.zone = item.String("AvailabilityZone");
    raw.instance_type = item.String("InstanceType");
    raw.product = item.String("ProductDescription");
    raw.price = item.String("SpotPrice");
    raw.since = item.String("Timestamp");
    MEDLEY_RETURN_IF_ERROR(item.status());
    MEDLEY_ASSIGN_OR_RETURN(SpotRecord record, ToRecord(raw, i));
    page.records.push_back(std::move(record));
  }
  MEDLEY_RETURN_IF_ERROR(answer.status());
  return page;
}

absl::StatusOr<ParsedPrices> NewestSpotPrices(const std::vector<SpotRecord>& records, const Selection& selection,
                                              const std::vector<std::string>& products) {
  ParsedPrices out;
  std::map<std::pair<std::string, std::string>, const SpotRecord*> newest;
  for (const SpotRecord& record : records) {
    const std::string region = AwsRegionOfZone(record.zone);
    if (region.empty()) return base::InvalidArgument("'{}' is not an AWS availability zone", Quoted(record.zone));
    const bool ours = products.empty() || std::find(products.begin(), products.end(), record.product) != products.end();
    if (!ours || !selection.Wants(region, record.instance_type)) {
      ++out.skipped;
      continue;
    }
    const SpotRecord*& best = newest[{record.zone, record.instance_type}];
    if (best != nullptr) ++out.skipped;
    if (best == nullptr || std::pair(record.since, record.price) > std::pair(best->since, best->price)) best = &record;
  }
  for (const auto& [key, record] : newest) {
    CatalogEntry entry;
    const std::string region = AwsRegionOfZone(record->zone);
    entry.offering = model::Offering{"aws", region, record->zone, record->instance_type, kSpot, 1};
    entry.price_per_instance_hour = record->price;
    entry.effective_at = record->since;
    if (region.starts_with("cn-")) entry.currency = "CNY";
    out.entries.push_back(std::move(entry));
  }
  return out;
}

}  // namespace medley::sched
