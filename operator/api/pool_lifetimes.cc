#include "operator/api/pool_lifetimes.h"

#include <algorithm>
#include <cmath>

#include "common/base/quantity.h"
#include "common/base/status.h"
#include "common/document/reader.h"

namespace medley::ops {
namespace {

constexpr double kHour = 3600;
constexpr double kWeightOfNewStart = 0.2;
constexpr double kMostUnitHours = 1e9;
constexpr double kMostStartSeconds = 24 * kHour;
constexpr double kStep = 0.001;

// As the status stores it, so that what was stored equals what is read.
double Rounded(double value) { return std::round(value * 1e3) / 1e3; }

}  // namespace

void PoolLifetimes::NoteUnits(int units, base::WallTime now) {
  now = std::chrono::floor<std::chrono::seconds>(now);
  if (updated == base::WallTime()) {
    updated = now;
    return;
  }
  const double hours = base::ToSeconds(now - updated) / kHour;
  if (hours > 0) {
    const double weight = std::exp2(-hours / kLifetimeHalfLifeHours);
    unit_hours = unit_hours * weight + units * std::min(hours, kMostHoursBetweenLooks);
    losses *= weight;
  }
  updated = now;
}

void PoolLifetimes::NoteStart(double seconds) {
  seconds = std::clamp(seconds, 0.0, kMostStartSeconds);
  start_seconds = start_seconds > 0 ? start_seconds + kWeightOfNewStart * (seconds - start_seconds) : seconds;
}

bool PoolLifetimes::DiffersFrom(const PoolLifetimes& stored) const {
  const double hours = base::ToSeconds(updated - stored.updated) / kHour;
  const bool lost = losses > stored.losses + 0.5;
  const bool older = hours >= 0.25 && (unit_hours != stored.unit_hours || losses != stored.losses);
  const bool slower = std::abs(start_seconds - stored.start_seconds) > 0.2 * std::max(stored.start_seconds, 1.0);
  return lost || older || slower;
}

PoolLifetimes PoolLifetimes::FromJson(const kube::Json& json) {
  PoolLifetimes out;
  if (!json.is_object()) return out;
  const document::Reader reader(json, "status.interruptions");
  const auto number = [&](const char* field, double most) {
    const double value = reader.Quantity(field, 0);
    return std::isfinite(value) && value >= 0 && value <= most ? value : 0;
  };
  const auto updated = base::ParseTime(reader.String("updated"));
  if (!updated.ok()) return out;
  out.updated = std::chrono::floor<std::chrono::seconds>(*updated);
  out.unit_hours = number("unitHours", kMostUnitHours);
  out.losses = number("losses", kMostUnitHours);
  out.start_seconds = number("startSeconds", kMostStartSeconds);
  return reader.status().ok() ? out : PoolLifetimes();
}

kube::Json PoolLifetimes::ToJson() const {
  kube::Json json = {{"unitHours", base::FormatDecimal(Rounded(unit_hours), 3)},
                     {"losses", base::FormatDecimal(Rounded(losses), 3)},
                     {"updated", base::FormatTime(updated)}};
  if (start_seconds > 0) json["startSeconds"] = base::FormatDecimal(Rounded(start_seconds), 3);
  return json;
}

double LostShare(const PoolLifetimes& lifetimes, double seconds) {
  if (!(seconds > 0)) return 0;
  const double share = lifetimes.LossesPerHour() * seconds / kHour;
  return std::min(std::round(share / kStep) * kStep, kMostLost);
}

}  // namespace medley::ops
