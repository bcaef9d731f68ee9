#include "cli/traces/policies.h"

#include <algorithm>
#include <cmath>

namespace medley::cli::traces {
namespace {

namespace spot = ops::spot;

bool Differs(double a, double b, double share) { return std::abs(a - b) > share * std::max(std::abs(a), std::abs(b)); }

// By so little the expected costs change less than they are worth.
bool IsAlike(const std::vector<spot::ZoneOffer>& a, const std::vector<spot::ZoneOffer>& b) {
  constexpr double kRates = 0.1, kPrices = 0.01;
  for (size_t z = 0; z < a.size(); ++z) {
    if (Differs(a[z].rates.losses_per_hour, b[z].rates.losses_per_hour, kRates)) return false;
    if (Differs(a[z].rates.returns_per_hour, b[z].rates.returns_per_hour, kRates)) return false;
    if (Differs(a[z].spot_usd_per_hour, b[z].spot_usd_per_hour, kPrices)) return false;
  }
  return true;
}

spot::SpotState StateOf(const View& view) {
  spot::SpotState state;
  state.runs = view.runs == Runs::kSpot       ? spot::SpotState::Runs::kSpot
               : view.runs == Runs::kOnDemand ? spot::SpotState::Runs::kOnDemand
                                              : spot::SpotState::Runs::kNothing;
  state.zone = view.zone;
  state.starting_hours = view.starting_hours;
  state.work_hours = view.work_hours;
  state.hours_to_deadline = view.job->deadline_hours - view.hours;
  state.hours_to_next_look = view.tick_hours;
  const bool saved = view.job->notice_hours > 0 && view.job->notice_hours >= view.job->save_hours;
  state.work_at_risk_hours = saved ? 0 : view.job->checkpoint_hours;
  return state;
}

}  // namespace

void MedleyPolicy::See(size_t zone, double hours, bool up, Source /*source*/) {
  spot::NoteSighting(records_[zone], hours, up);
}

void MedleyPolicy::Refresh(const View& view) {
  const size_t zones = view.trace->zones.size();
  const std::vector<spot::ZoneRates> rates = spot::RatesOf(records_, prior_);
  spot::TableQuestion question;
  question.start_hours = view.job->start_hours;
  question.work_hours = view.work_hours;
  question.spare_hours = view.job->deadline_hours - view.hours - view.work_hours - view.job->start_hours;
  for (size_t z = 0; z < zones; ++z) {
    spot::ZoneOffer offer;
    offer.spot_usd_per_hour = view.SpotUsd(z);
    offer.on_demand_usd_per_hour = view.OnDemandUsd(z);
    offer.rates = rates[z];
    for (size_t to = 0; to < zones; ++to) offer.egress_usd.push_back(view.EgressUsd(z, to));
    question.zones.push_back(std::move(offer));
  }
  if (table_ && IsAlike(table_->question().zones, question.zones)) return;
  table_.emplace(std::move(question));
}

Step MedleyPolicy::Decide(const View& view) {
  records_.resize(view.trace->zones.size());
  Refresh(view);
  const spot::SpotState state = StateOf(view);
  std::vector<double> chances;
  const std::vector<spot::ZoneOffer>& offers = table_->question().zones;
  for (size_t z = 0; z < records_.size(); ++z) {
    // Seen in this very tick: it is known. Otherwise asking costs nothing.
    const auto& last = records_[z].last;
    const bool known = last && last->hour >= view.hours;
    chances.push_back(known ? (last->up ? 1 : 0)
                            : std::max(1e-6, spot::ChanceUp(records_[z], offers[z].rates, view.hours)));
  }
  const spot::SpotDecision decision = spot::DecideSpot(*table_, state, chances);
  Step step;
  step.ask = decision.ask;
  step.on_demand_zone = decision.on_demand_zone;
  step.otherwise = decision.otherwise == spot::SpotDecision::Act::kOnDemand ? Step::Else::kOnDemand
                   : decision.otherwise == spot::SpotDecision::Act::kWait   ? Step::Else::kStop
                                                                            : Step::Else::kStay;
  const bool acts = !step.ask.empty() || step.otherwise != Step::Else::kStay;
  if (acts) {
    const std::string numbers = spot::Explain(*table_, state, decision, view.trace->zones);
    step.why = std::string(decision.reason) + ": " + numbers;
    step.why_spot = (view.runs == Runs::kNothing ? "Cheapest" : decision.reason) + (": " + numbers);
  }
  return step;
}

size_t CheapestOnDemandZone(const View& view) {
  size_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (size_t z = 0; z < view.trace->zones.size(); ++z) {
    const double usd = view.work_hours * view.OnDemandUsd(z) + (view.zone ? view.EgressUsd(*view.zone, z) : 0);
    if (usd < least) {
      least = usd;
      best = z;
    }
  }
  return best;
}

bool IsLastMoment(const View& view) {
  const double trained = view.runs == Runs::kNothing ? 0 : std::max(0.0, view.tick_hours - view.starting_hours);
  const double left = view.job->deadline_hours - view.hours - view.tick_hours;
  const bool saved = view.job->notice_hours > 0 && view.job->notice_hours >= view.job->save_hours;
  const double at_risk = saved ? 0 : view.job->checkpoint_hours;
  return trained < view.work_hours && view.work_hours - trained + at_risk + view.job->start_hours > left + 1e-9;
}

Step FirstPlanPolicy::Decide(const View& view) {
  if (view.runs == Runs::kOnDemand) return {};
  if (IsLastMoment(view)) {
    return {.otherwise = Step::Else::kOnDemand, .on_demand_zone = CheapestOnDemandZone(view), .why = "the last moment"};
  }
  if (view.runs == Runs::kSpot) return {};
  if (!zone_) {
    zone_ = 0;
    for (size_t z = 1; z < view.trace->zones.size(); ++z) {
      const bool up = view.trace->units[z][view.tick] >= view.job->units;
      const bool best_up = view.trace->units[*zone_][view.tick] >= view.job->units;
      if (up > best_up || (up == best_up && view.SpotUsd(z) < view.SpotUsd(*zone_))) zone_ = z;
    }
  }
  return {.ask = {*zone_}, .why = "the zone of the first plan"};
}

Step CheapestNowPolicy::Decide(const View& view) {
  if (view.runs == Runs::kOnDemand && IsLastMoment(view)) return {};
  const size_t on_demand = CheapestOnDemandZone(view);
  if (IsLastMoment(view)) {
    return {.otherwise = Step::Else::kOnDemand, .on_demand_zone = on_demand, .why = "the last moment"};
  }
  double paid = view.OnDemandUsd(on_demand);
  if (view.runs == Runs::kSpot) paid = view.SpotUsd(*view.zone);
  Step step{.otherwise = view.runs == Runs::kNothing ? Step::Else::kOnDemand : Step::Else::kStay,
            .on_demand_zone = on_demand,
            .why = "the cheapest units now"};
  for (size_t z = 0; z < view.trace->zones.size(); ++z) {
    if (view.SpotUsd(z) < paid - 1e-9) step.ask.push_back(z);
  }
  std::stable_sort(step.ask.begin(), step.ask.end(),
                   [&](size_t a, size_t b) { return view.SpotUsd(a) < view.SpotUsd(b); });
  return step;
}

Step OnDemandPolicy::Decide(const View& view) {
  if (view.runs == Runs::kOnDemand) return {};
  return {.otherwise = Step::Else::kOnDemand, .on_demand_zone = CheapestOnDemandZone(view), .why = "on-demand units"};
}

}  // namespace medley::cli::traces
