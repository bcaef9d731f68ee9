#include "operator/api/goodput_status.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "common/base/quantity.h"
#include "common/document/reader.h"

namespace medley::ops {
namespace {

using document::Reader;
using goodput::Amounts;
using goodput::Category;
using kube::Json;

Json SecondsJson(const Amounts& amounts) {
  Json json = Json::object();
  for (const Category category : goodput::kCategories) {
    const double seconds = std::round(amounts[category] * 1000) / 1000;
    if (seconds > 0) json[std::string(ToString(category))] = seconds;
  }
  return json;
}

Json UsdJson(const Amounts& amounts) {
  Json json = Json::object();
  for (const Category category : goodput::kCategories) {
    std::string usd = base::FormatDecimal(amounts[category], 6);
    if (amounts[category] > 0 && usd != "0") json[std::string(ToString(category))] = std::move(usd);
  }
  return json;
}

Amounts ReadSeconds(const Reader& reader, const char* field) {
  Amounts amounts;
  if (!reader.Has(field)) return amounts;
  const Reader child = reader.Child(field);
  for (const Category category : goodput::kCategories) {
    amounts[category] = std::max(0.0, child.Number(std::string(ToString(category)), 0));
  }
  return amounts;
}

Amounts ReadUsd(const Reader& reader) {
  Amounts amounts;
  if (!reader.Has("usd")) return amounts;
  const Reader child = reader.Child("usd");
  for (const Category category : goodput::kCategories) {
    amounts[category] = std::max(0.0, child.Quantity(std::string(ToString(category)), 0));
  }
  return amounts;
}

}  // namespace

GoodputStatus GoodputStatus::FromJson(const Json& json) {
  GoodputStatus status;
  const Reader reader(json, "status.goodput");
  status.bill.account = reader.String("account");
  status.bill.samples = reader.Int("samples", 0);
  for (const Reader& item : reader.List("pools")) {
    goodput::PoolBill& pool = status.bill.pools[item.String("pool")];
    pool.seconds = ReadSeconds(item, "seconds");
    pool.usd = ReadUsd(item);
    pool.counted = ReadSeconds(item, "counted");
  }
  if (reader.Has("promised")) {
    const Reader promised = reader.Child("promised");
    status.promised = PromiseStatus{promised.Quantity("usd", 0), promised.Quantity("usdPerHour", 0),
                                    promised.Number("throughput", 0)};
  }
  return status;
}

Json GoodputStatus::ToJson() const {
  Json json = {{"share", std::round(bill.Share() * 1e4) / 1e4},
               {"seconds", SecondsJson(bill.Seconds())},
               {"usd", UsdJson(bill.Usd())}};
  if (!bill.account.empty()) json["account"] = bill.account;
  if (bill.samples > 0) json["samples"] = bill.samples;
  for (const auto& [name, pool] : bill.pools) {
    json["pools"].push_back({{"pool", name},
                             {"seconds", SecondsJson(pool.seconds)},
                             {"usd", UsdJson(pool.usd)},
                             {"counted", SecondsJson(pool.counted)}});
  }
  if (promised) {
    json["promised"] = {{"usd", base::FormatDecimal(promised->usd, 6)},
                        {"usdPerHour", base::FormatDecimal(promised->usd_per_hour, 6)},
                        {"throughput", std::round(promised->throughput * 10) / 10}};
  }
  return json;
}

}  // namespace medley::ops
