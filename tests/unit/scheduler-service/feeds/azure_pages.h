// Builds responses of the Azure Retail Prices API in the documented format.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

namespace medley::sched {

struct AzureItem {
  std::string size;                 // armSkuName: "Standard_NC6s_v3"
  std::string region;               // armRegionName
  std::string price;                // as JSON
  std::string suffix = "";          // of skuName and meterName: " Spot"
  std::string product_suffix = "";  // of productName: " Windows"
  std::string type = "Consumption";
  std::string unit = "1 Hour";
  std::string currency = "USD";
  std::string since = "2021-11-01T00:00:00Z";
};

inline std::string AzureBody(const std::vector<AzureItem>& items, const std::string& next) {
  std::string list;
  for (const AzureItem& item : items) {
    const size_t underscore = item.size.find('_');
    const std::string name = underscore == std::string::npos ? "x" : item.size.substr(underscore + 1);
    list += fmt::format(
        R"({}{{"currencyCode":"{}","tierMinimumUnits":0.0,"retailPrice":{},"unitPrice":{},"armRegionName":"{}",)"
        R"("location":"x","effectiveStartDate":"{}","meterId":"m","meterName":"{}{}","productId":"p","skuId":"s",)"
        R"("productName":"Virtual Machines {} Series{}","skuName":"{}{}","serviceName":"Virtual Machines",)"
        R"("serviceId":"v","serviceFamily":"Compute","unitOfMeasure":"{}","type":"{}","isPrimaryMeterRegion":true,)"
        R"("armSkuName":"{}"}})",
        list.empty() ? "" : ",", item.currency, item.price, item.price, item.region, item.since, name, item.suffix,
        name, item.product_suffix, name, item.suffix, item.unit, item.type, item.size);
  }
  return fmt::format(
      R"({{"BillingCurrency":"USD","CustomerEntityId":"Default","CustomerEntityType":"Retail","Items":[{}],)"
      R"("NextPageLink":{},"Count":{}}})",
      list, next.empty() ? "null" : "\"" + next + "\"", items.size());
}

}  // namespace medley::sched
