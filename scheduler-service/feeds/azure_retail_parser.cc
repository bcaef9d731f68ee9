#include "scheduler-service/feeds/azure_retail_parser.h"

#include <nlohmann/json.hpp>

#include "common/base/status.h"
#include "common/document/reader.h"
#include "scheduler-service/feeds/answer_limits.h"

namespace medley::sched {
namespace {

constexpr std::chrono::hours kMaxFutureStart{24};

bool Contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// The entry for an item, or nullopt if the item is skipped.
absl::StatusOr<std::optional<CatalogEntry>> ParseItem(const document::Reader& item, const Selection& selection,
                                                      base::WallTime now) {
  item.Require({"skuName", "productName", "meterName", "type", "unitOfMeasure", "currencyCode", "retailPrice"});
  const std::string sku = item.String("skuName");
  const std::string product = item.String("productName");
  const std::string meter = item.String("meterName");
  const std::string type = item.String("type");
  const std::string unit = item.String("unitOfMeasure");
  const std::string currency = item.String("currencyCode");
  const std::string instance_type = item.String("armSkuName");
  const std::string region = item.String("armRegionName");
  const double price = item.Number("retailPrice", 0);
  const std::string since = item.String("effectiveStartDate");
  MEDLEY_RETURN_IF_ERROR(item.status());
  CatalogEntry entry;
  if (!since.empty()) {
    auto time = base::ParseTime(since);
    if (!time.ok())
      return base::InvalidArgument("{}.effectiveStartDate: '{}' is not a time", item.path(), Quoted(since));
    entry.effective_at = *time;
  }
  const bool left_out = type != "Consumption" || unit != "1 Hour" || price == 0 || instance_type.empty() ||
                        region.empty() || Contains(product, "Windows") || Contains(sku, "Low Priority") ||
                        Contains(meter, "Low Priority") || Contains(product, "Dedicated") ||
                        Contains(sku, "Dedicated") || Contains(meter, "Dedicated") ||
                        entry.effective_at > now + kMaxFutureStart || !selection.Wants(region, instance_type);
  if (left_out) return std::nullopt;
  if (absl::Status status = CheckPrice(price); !status.ok())
    return base::Annotate(status, item.path() + ".retailPrice");
  entry.offering = model::Offering{"azure", region, "", instance_type, sku.ends_with(" Spot") ? kSpot : kOnDemand, 1};
  entry.price_per_instance_hour = price;
  entry.currency = currency;
  return entry;
}

}  // namespace

absl::StatusOr<AzurePage> ParseAzurePage(std::string_view body, const Selection& selection, base::WallTime now) {
  MEDLEY_ASSIGN_OR_RETURN(const nlohmann::json tree, document::ParseJson(body, kAnswerLimits));
  const document::Reader answer(tree);
  answer.Require({"Items"});
  AzurePage page;
  page.next = answer.String("NextPageLink");
  const std::vector<document::Reader> items = answer.List("Items");
  MEDLEY_RETURN_IF_ERROR(answer.status());
  for (const document::Reader& item : items) {
    MEDLEY_ASSIGN_OR_RETURN(std::optional<CatalogEntry> entry, ParseItem(item, selection, now));
    if (entry) {
      page.prices.entries.push_back(*std::move(entry));
    } else {
      ++page.prices.skipped;
    }
  }
  return page;
}

}  // namespace medley::sched
