#include "scheduler-service/feeds/azure_retail_parser.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "common/base/status.h"
#include "scheduler-service/feeds/json_body.h"

namespace medley::sched {
namespace {

using nlohmann::json;

constexpr std::chrono::hours kMaxFutureStart{24};

bool Contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// The entry for an item, or nullopt if the item is skipped.
absl::StatusOr<std::optional<CatalogEntry>> ParseItem(const json& item, const std::string& where,
                                                      const Selection& selection, base::WallTime now) {
  MEDLEY_ASSIGN_OR_RETURN(const std::string sku, JsonString(item, "skuName", where));
  MEDLEY_ASSIGN_OR_RETURN(const std::string product, JsonString(item, "productName", where));
  MEDLEY_ASSIGN_OR_RETURN(const std::string meter, JsonString(item, "meterName", where));
  MEDLEY_ASSIGN_OR_RETURN(const std::string type, JsonString(item, "type", where));
  MEDLEY_ASSIGN_OR_RETURN(const std::string unit, JsonString(item, "unitOfMeasure", where));
  MEDLEY_ASSIGN_OR_RETURN(const std::string currency, JsonString(item, "currencyCode", where));
  MEDLEY_ASSIGN_OR_RETURN(const std::string instance_type, JsonOptionalString(item, "armSkuName", where));
  MEDLEY_ASSIGN_OR_RETURN(const std::string region, JsonOptionalString(item, "armRegionName", where));
  MEDLEY_ASSIGN_OR_RETURN(const double price, JsonNumber(item, "retailPrice", where));
  MEDLEY_ASSIGN_OR_RETURN(const std::string since, JsonOptionalString(item, "effectiveStartDate", where));
  CatalogEntry entry;
  if (!since.empty()) {
    auto time = base::ParseTime(since);
    if (!time.ok()) return base::InvalidArgument("{}.effectiveStartDate: '{}' is not a time", where, Quoted(since));
    entry.effective_at = *time;
  }
  const bool left_out = type != "Consumption" || unit != "1 Hour" || price == 0 || instance_type.empty() ||
                        region.empty() || Contains(product, "Windows") || Contains(sku, "Low Priority") ||
                        Contains(meter, "Low Priority") || Contains(product, "Dedicated") ||
                        Contains(sku, "Dedicated") || Contains(meter, "Dedicated") ||
                        entry.effective_at > now + kMaxFutureStart || !selection.Wants(region, instance_type);
  if (left_out) return std::nullopt;
  if (absl::Status status = CheckPrice(price); !status.ok()) return base::Annotate(status, where + ".retailPrice");
  entry.offering = model::Offering{"azure", region, "", instance_type, sku.ends_with(" Spot") ? kSpot : kOnDemand, 1};
  entry.price_per_instance_hour = price;
  entry.currency = currency;
  return entry;
}

}  // namespace

absl::StatusOr<AzurePage> ParseAzurePage(std::string_view body, const Selection& selection, base::WallTime now) {
  MEDLEY_ASSIGN_OR_RETURN(const json answer, ParseJsonBody(body));
  MEDLEY_ASSIGN_OR_RETURN(const json* items, JsonArray(answer, "Items", "answer"));
  AzurePage page;
  MEDLEY_ASSIGN_OR_RETURN(page.next, JsonOptionalString(answer, "NextPageLink", "answer"));
  for (size_t i = 0; i < items->size(); ++i) {
    MEDLEY_ASSIGN_OR_RETURN(std::optional<CatalogEntry> entry,
                            ParseItem(items->at(i), fmt::format("Items[{}]", i), selection, now));
    if (entry) {
      page.prices.entries.push_back(*std::move(entry));
    } else {
      ++page.prices.skipped;
    }
  }
  return page;
}

}  // namespace medley::sched
