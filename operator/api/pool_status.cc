#include "operator/api/pool_status.h"

#include <fmt/format.h>

#include "common/base/quantity.h"
#include "common/document/reader.h"

namespace medley::ops {
namespace {

constexpr double kSmallPrice = 1e-3;  // six decimals would leave little of it, or nothing

}  // namespace

PoolStatus PoolStatus::FromJson(const kube::Json& json) {
  PoolStatus status;
  const document::Reader reader(json, "status");
  status.observed_generation = reader.Int("observedGeneration", 0);
  status.conditions = Conditions::FromJson(reader.Raw("conditions"));
  status.usd_per_unit_hour = reader.Quantity("usdPerUnitHour", 0);
  status.price_time = reader.String("priceTime");
  status.price_source = reader.String("priceSource");
  status.zone = reader.String("zone");
  status.unavailable_since = reader.String("unavailableSince");
  status.outages = OutagesFromJson(reader.Raw("outages"));
  status.lifetimes = PoolLifetimes::FromJson(reader.Raw("interruptions"));
  const document::Reader units = reader.Child("units");
  status.units = {static_cast<int>(units.Int("limit", 0)), static_cast<int>(units.Int("capacity", 0)),
                  static_cast<int>(units.Int("used", 0)), static_cast<int>(units.Int("free", 0))};
  return status;
}

kube::Json PoolStatus::ToJson() const {
  kube::Json json = {
      {"observedGeneration", observed_generation},
      {"conditions", conditions.ToJson()},
      {"units", {{"limit", units.limit}, {"capacity", units.capacity}, {"used", units.used}, {"free", units.free}}}};
  if (usd_per_unit_hour > 0)
    json["usdPerUnitHour"] = base::FormatDecimal(usd_per_unit_hour, usd_per_unit_hour < kSmallPrice ? 18 : 6);
  if (!price_time.empty()) json["priceTime"] = price_time;
  if (!price_source.empty()) json["priceSource"] = price_source;
  if (!zone.empty()) json["zone"] = zone;
  if (!unavailable_since.empty()) json["unavailableSince"] = unavailable_since;
  if (!outages.empty()) json["outages"] = ops::ToJson(outages);
  if (lifetimes.updated != base::WallTime()) json["interruptions"] = lifetimes.ToJson();
  return json;
}

std::string DeletionWarning(const kube::Object& pool) {
  const int used = PoolStatus::FromJson(pool.At("/status")).units.used;
  if (used <= 0) return "";
  return fmt::format(
      "units of ResourcePool {} that jobs hold: {}; these jobs are planned again without it, and wait if no other pool "
      "will do",
      pool.key().name, used);
}

}  // namespace medley::ops
