// What was seen of the spot capacity of a zone, and what follows for its future. Values and pure functions.
//
// Capacity is taken as a process with two states, up and down, that leaves each at a constant rate: losses per hour
// while it is up, returns per hour while it is down. Rates are means of Gamma posteriors. A zone that was seen little
// has about the rates of all zones together, and these begin with `Prior`. What was seen counts less as time passes
// (half after kHalfLifeHours), since capacity changes from day to day.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace medley::ops::spot {

// Two sightings further apart than this say nothing about the time between.
inline constexpr double kMostHoursBetween = 2;
inline constexpr double kHalfLifeHours = 48;

struct ZoneRecord {
  double up_hours = 0, down_hours = 0;  // that were seen, with less weight for older ones
  double losses = 0, returns = 0;       // with the same weights
  struct Sighting {
    double hour = 0;
    bool up = false;
  };
  std::optional<Sighting> last;
};

// The zone had a unit at `hour`, or refused one, or took one away. Hours of any origin; one that is not later than the
// last sighting replaces it.
void NoteSighting(ZoneRecord& record, double hour, bool up);

struct ZoneRates {
  double losses_per_hour = 0;   // > 0
  double returns_per_hour = 0;  // > 0
  double ShareUp() const { return returns_per_hour / (losses_per_hour + returns_per_hour); }
  double LifeHours() const { return 1 / losses_per_hour; }
};

// A zone of which nothing was seen: its units live for 4 hours and come back after 1, which weighs as much as two
// events in the rates of all zones together. These weigh as much as two events in the rates of each zone.
struct Prior {
  double life_hours = 4, away_hours = 1;
  double events = 2;
};

// One for each record, in their order.
std::vector<ZoneRates> RatesOf(std::span<const ZoneRecord> records, const Prior& prior = {});

// The chance that the zone has a unit at `hour`.
double ChanceUp(const ZoneRecord& record, const ZoneRates& rates, double hour);

}  // namespace medley::ops::spot
