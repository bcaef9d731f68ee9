#include "operator/spot/decide.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/base/figure.h"

namespace medley::ops::spot {
namespace {

constexpr double kNoHours = 1e-9;

struct Place {
  size_t zone = 0;
  double usd = std::numeric_limits<double>::infinity();
};

Place CheapestOnDemand(const CostTable& table, const SpotState& state, double spare) {
  Place best;
  for (size_t z = 0; z < table.question().zones.size(); ++z) {
    const double usd = table.StartOnDemand(state.zone.value_or(z), z, state.work_hours, spare);
    if (usd < best.usd) best = {z, usd};
  }
  return best;
}

// The zones in which to start is cheaper than `otherwise`, the cheapest first.
std::vector<size_t> CheaperStarts(const CostTable& table, const SpotState& state, double spare, double otherwise,
                                  const std::vector<double>& chances) {
  std::vector<Place> places;
  for (size_t z = 0; z < table.question().zones.size(); ++z) {
    if (state.runs == SpotState::Runs::kSpot && z == state.zone) continue;
    if (chances[z] <= 0) continue;
    const double usd = table.StartSpot(state.zone.value_or(z), z, state.work_hours, spare);
    if (usd < otherwise) places.push_back({z, usd});
  }
  std::stable_sort(places.begin(), places.end(), [](const Place& a, const Place& b) { return a.usd < b.usd; });
  std::vector<size_t> zones;
  for (const Place& place : places) zones.push_back(place.zone);
  return zones;
}

double FastestOnDemand(const CostTable& table) {
  double fastest = 0;
  for (const ZoneOffer& zone : table.question().zones) {
    if (std::isfinite(zone.on_demand_usd_per_hour)) fastest = std::max(fastest, zone.speed);
  }
  return fastest;
}

// Nothing runs.
SpotDecision DecideWithoutUnits(const CostTable& table, const SpotState& state, const std::vector<double>& chances,
                                SpotDecision decision, const Place& on_demand) {
  using Act = SpotDecision::Act;
  const std::vector<ZoneOffer>& zones = table.question().zones;
  const double look = state.hours_to_next_look, spare = decision.spare_hours;
  const bool can_lose_a_look = spare - look >= -kNoHours;
  if (!can_lose_a_look) {
    decision.otherwise = Act::kOnDemand;
    decision.expected_usd = on_demand.usd;
    decision.reason = "NoSpareTime";
    return decision;
  }
  double waiting = std::numeric_limits<double>::infinity();
  for (size_t z = 0; z < zones.size(); ++z) {
    if (state.zone && z != *state.zone) continue;
    waiting = std::min(waiting, table.Waiting(z, state.work_hours, std::max(0.0, spare - look)));
  }
  // What is expected of on-demand units includes a return to spot units; the saving is one against none.
  double to_the_end = std::numeric_limits<double>::infinity();
  for (size_t z = 0; z < zones.size(); ++z) {
    to_the_end = std::min(to_the_end, table.StartOnDemand(state.zone.value_or(z), z, state.work_hours, 0));
  }
  const bool waits = waiting <= std::min(on_demand.usd, (1 - state.min_saving) * to_the_end);
  decision.otherwise = waits ? Act::kWait : Act::kOnDemand;
  decision.expected_usd = waits ? waiting : on_demand.usd;
  decision.reason = waits ? "WaitsForSpot" : "OnDemandIsCheaper";
  decision.ask = CheaperStarts(table, state, spare, decision.expected_usd, chances);
  return decision;
}

}  // namespace

double SpareHours(const SpotState& state, double start_hours, double fastest_on_demand) {
  return state.hours_to_deadline - state.work_hours / fastest_on_demand - start_hours;
}

SpotDecision DecideSpot(const CostTable& table, const SpotState& state, const std::vector<double>& chances) {
  using Act = SpotDecision::Act;
  using Runs = SpotState::Runs;
  const std::vector<ZoneOffer>& zones = table.question().zones;
  const double start = table.question().start_hours, fastest = FastestOnDemand(table);
  const double look = state.hours_to_next_look;
  SpotDecision decision;
  const double spare = SpareHours(state, start, fastest);
  decision.spare_hours = spare;
  const Place on_demand = CheapestOnDemand(table, state, spare);
  decision.on_demand_zone = on_demand.zone;
  // What is left when nothing is trained until the next decision.
  const bool can_lose_a_look = spare - look >= -kNoHours;

  if (state.runs == Runs::kOnDemand) {
    decision.otherwise = Act::kStay;
    decision.expected_usd = table.OnDemand(*state.zone, state.work_hours, std::max(0.0, spare));
    decision.reason = "Cheapest";
    if (can_lose_a_look) {
      // What is expected of staying includes later moves. The saving is one against never moving, or a move that is
      // always as good a little later would never be made.
      const double to_the_end = state.work_hours / zones[*state.zone].speed * zones[*state.zone].on_demand_usd_per_hour;
      const double most = std::min(decision.expected_usd, (1 - state.min_saving) * to_the_end);
      decision.ask = CheaperStarts(table, state, spare, most, chances);
      if (!decision.ask.empty()) decision.reason = "SpotIsBack";
    }
    return decision;
  }
  if (state.runs == Runs::kSpot) {
    const ZoneOffer& zone = zones[*state.zone];
    const double trained = std::max(0.0, look - state.starting_hours) * zone.speed - state.work_at_risk_hours;
    // As if the units were lost at the next look.
    SpotState after = state;
    after.work_hours -= trained;
    after.hours_to_deadline -= look;
    if (SpareHours(after, start, fastest) < -kNoHours && state.work_hours > trained) {
      decision.otherwise = Act::kOnDemand;
      decision.expected_usd = on_demand.usd;
      decision.reason = "NoSpareTime";
      return decision;
    }
    const double left = std::max(0.0, spare - state.starting_hours);
    decision.otherwise = Act::kStay;
    decision.expected_usd =
        zone.spot_usd_per_hour * state.starting_hours + table.Running(*state.zone, state.work_hours, left);
    decision.reason = "Cheapest";
    if (can_lose_a_look) {
      const double until_lost =
          zone.spot_usd_per_hour * state.starting_hours + table.RunningUntilLost(*state.zone, state.work_hours, left);
      const double most = std::min(decision.expected_usd, (1 - state.min_saving) * until_lost);
      decision.ask = CheaperStarts(table, state, spare, most, chances);
      if (!decision.ask.empty()) decision.reason = "CheaperZone";
    }
    if (on_demand.usd < (1 - state.min_saving) * decision.expected_usd) {
      decision.otherwise = Act::kOnDemand;
      decision.expected_usd = on_demand.usd;
      decision.reason = "OnDemandIsCheaper";
    }
    return decision;
  }
  return DecideWithoutUnits(table, state, chances, decision, on_demand);
}

std::string Explain(const CostTable& table, const SpotState& state, const SpotDecision& decision,
                    const std::vector<std::string>& names) {
  using Act = SpotDecision::Act;
  const auto usd = [](double value) { return base::Figure(value) + " USD"; };
  const auto hours = [](double value) { return base::Figure(std::max(0.0, value), 3) + " h"; };
  std::string text = fmt::format("{} of work and {} to the deadline leave {} to spare", hours(state.work_hours),
                                 hours(state.hours_to_deadline), hours(decision.spare_hours));
  switch (decision.otherwise) {
    case Act::kStay:
      text += fmt::format("; staying in {} is expected to cost {}", names[*state.zone], usd(decision.expected_usd));
      break;
    case Act::kWait:
      text += fmt::format("; waiting for spot units is expected to cost {}", usd(decision.expected_usd));
      break;
    case Act::kSpot:
      break;
    case Act::kOnDemand:
      text += fmt::format("; on-demand units in {} are expected to cost {}", names[decision.on_demand_zone],
                          usd(decision.expected_usd));
      break;
  }
  if (!decision.ask.empty()) {
    const size_t zone = decision.ask.front();
    const double spare = decision.spare_hours;
    text += fmt::format("; spot units in {}, which live for {} on average, {}", names[zone],
                        hours(table.question().zones[zone].rates.LifeHours()),
                        usd(table.StartSpot(state.zone.value_or(zone), zone, state.work_hours, spare)));
  }
  return text;
}

}  // namespace medley::ops::spot
