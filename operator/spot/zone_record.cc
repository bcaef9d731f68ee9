#include "operator/spot/zone_record.h"

#include <cmath>

namespace medley::ops::spot {

void NoteSighting(ZoneRecord& record, double hour, bool up) {
  if (record.last && hour > record.last->hour) {
    const double passed = hour - record.last->hour;
    const double kept = std::exp2(-passed / kHalfLifeHours);
    for (double* sum : {&record.up_hours, &record.down_hours, &record.losses, &record.returns}) *sum *= kept;
    if (passed <= kMostHoursBetween) {
      const bool was_up = record.last->up;
      // When it changed between the two is not known: half of the time counts for each.
      record.up_hours += passed * (0.5 * was_up + 0.5 * up);
      record.down_hours += passed * (0.5 * !was_up + 0.5 * !up);
      record.losses += was_up && !up;
      record.returns += !was_up && up;
    }
  }
  record.last = {hour, up};
}

std::vector<ZoneRates> RatesOf(std::span<const ZoneRecord> records, const Prior& prior) {
  ZoneRecord all;
  for (const ZoneRecord& record : records) {
    all.up_hours += record.up_hours;
    all.down_hours += record.down_hours;
    all.losses += record.losses;
    all.returns += record.returns;
  }
  const double losses = (all.losses + prior.events) / (all.up_hours + prior.events * prior.life_hours);
  const double returns = (all.returns + prior.events) / (all.down_hours + prior.events * prior.away_hours);
  std::vector<ZoneRates> rates;
  rates.reserve(records.size());
  for (const ZoneRecord& record : records) {
    rates.push_back({(record.losses + prior.events) / (record.up_hours + prior.events / losses),
                     (record.returns + prior.events) / (record.down_hours + prior.events / returns)});
  }
  return rates;
}

double ChanceUp(const ZoneRecord& record, const ZoneRates& rates, double hour) {
  const double share = rates.ShareUp();
  if (!record.last) return share;
  const double passed = std::max(0.0, hour - record.last->hour);
  const double now = record.last->up ? 1 : 0;
  return share + (now - share) * std::exp(-passed * (rates.losses_per_hour + rates.returns_per_hour));
}

}  // namespace medley::ops::spot
