#include "cli/traces/uniform_progress.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "cli/traces/policies.h"

namespace medley::cli::traces {
namespace {

constexpr size_t kWindow = 5;          // results that kAvailable counts
constexpr double kAvailableEvery = 2;  // hours between its probes
constexpr double kCostRatioEvery = 1;  // and those of kCostRatio
constexpr double kNeutral = 0.5;       // of a zone that was never asked
constexpr double kCloseEnough = 0.9;   // share of the best score with which kCostRatio stays

double WholeTicksDown(double hours, double tick) { return std::floor(hours / tick) * tick; }
double WholeTicksUp(double hours, double tick) { return std::ceil(hours / tick) * tick; }

}  // namespace

UniformProgressPolicy::Wanted UniformProgressPolicy::WantedUnits(const View& view, Runs runs, bool has_spot) {
  const TraceJob& job = *view.job;
  const double done = job.work_hours - view.work_hours;
  const double slope = job.work_hours / job.deadline_hours;
  const bool behind = done < view.hours * slope;
  const bool far_ahead = done > (view.hours + 2 * job.start_hours) * slope;
  leaves_on_demand_ = false;
  Wanted wanted = has_spot ? Wanted::kSpot : Wanted::kNothing;
  if (behind && !has_spot) wanted = Wanted::kOnDemand;
  if (runs == Runs::kOnDemand && (!has_spot || !far_ahead)) wanted = Wanted::kOnDemand;
  const double left = WholeTicksDown(job.deadline_hours - view.hours, view.tick_hours);
  const double two_starts = WholeTicksUp(view.work_hours + 2 * job.start_hours, view.tick_hours);
  if (two_starts > left && runs != Runs::kSpot) wanted = Wanted::kOnDemand;
  if (runs == Runs::kOnDemand && has_spot && wanted == Wanted::kOnDemand && far_ahead) {
    wanted = Wanted::kSpot;
    leaves_on_demand_ = true;
  }
  return wanted;
}

double UniformProgressPolicy::ShareMet(size_t zone) const {
  const std::deque<bool>& met = met_[zone];
  if (met.empty()) return kNeutral;
  return static_cast<double>(std::count(met.begin(), met.end(), true)) / static_cast<double>(met.size());
}

double UniformProgressPolicy::Score(const View& view, size_t zone) const {
  return order_ == ZoneOrder::kCostRatio ? ShareMet(zone) / view.SpotUsd(zone) : ShareMet(zone);
}

void UniformProgressPolicy::Count(size_t zone, bool met) {
  met_[zone].push_back(met);
  if (order_ == ZoneOrder::kAvailable && met_[zone].size() > kWindow) met_[zone].pop_front();
}

double UniformProgressPolicy::Every() const {
  const double every = order_ == ZoneOrder::kAvailable ? kAvailableEvery : kCostRatioEvery;
  return std::max(1.0, std::round(every / tick_hours_)) * tick_hours_;
}

void UniformProgressPolicy::See(size_t zone, double hours, bool up, Source source) {
  if (order_ == ZoneOrder::kCheapest || source == Source::kRunning) return;
  Count(zone, up);
  const bool one_clock = order_ == ZoneOrder::kCostRatio;
  if (source == Source::kProbe) {
    next_probe_[zone] = hours + Every();
    if (one_clock) next_look_[zone] = next_probe_[zone];
  } else if (up) {
    main_zone_ = zone;
    next_look_[zone] = hours + Every();
    if (one_clock) next_probe_[zone] = next_look_[zone];
  }
}

std::vector<size_t> UniformProgressPolicy::Ranked(const View& view) const {
  std::vector<size_t> zones(view.trace->zones.size());
  std::iota(zones.begin(), zones.end(), size_t{0});
  if (order_ != ZoneOrder::kCheapest) {
    std::stable_sort(zones.begin(), zones.end(), [&](size_t a, size_t b) { return Score(view, a) > Score(view, b); });
    return zones;
  }
  const auto just_lost = [&](size_t z) {
    return last_zone_ && RegionOf(view.trace->zones[z]) == RegionOf(view.trace->zones[*last_zone_]);
  };
  std::stable_sort(zones.begin(), zones.end(), [&](size_t a, size_t b) {
    return std::pair(just_lost(a), view.SpotUsd(a)) < std::pair(just_lost(b), view.SpotUsd(b));
  });
  return zones;
}

std::vector<size_t> UniformProgressPolicy::Probes(const View& view) {
  std::vector<size_t> due;
  const bool found_units = view.runs == Runs::kSpot;
  if (order_ == ZoneOrder::kCheapest || !asks_) return due;
  if (order_ == ZoneOrder::kAvailable && !found_units) return due;
  for (size_t z = 0; z < view.trace->zones.size(); ++z) {
    if (found_units && z == *view.zone) continue;
    if (view.hours >= next_probe_[z] - 1e-9) due.push_back(z);
  }
  if (order_ == ZoneOrder::kAvailable && due.size() > 1) {
    due = {
        *std::min_element(due.begin(), due.end(), [&](size_t a, size_t b) { return met_[a].size() < met_[b].size(); })};
  }
  return due;
}

Step UniformProgressPolicy::AskZones(const View& view) {
  const std::vector<size_t> ranked = Ranked(view);
  Step step{.why = "spot units"};
  if (view.runs == Runs::kSpot) {
    if (order_ == ZoneOrder::kCheapest) return step;
    const double best = Score(view, ranked.front()), present = Score(view, *view.zone);
    const double enough = order_ == ZoneOrder::kCostRatio ? best * kCloseEnough : best - 1e-6;
    if (ranked.front() == *view.zone || present >= enough) return step;
  }
  step.ask = ranked;
  step.otherwise = Step::Else::kStop;
  const bool gives_up = leaves_on_demand_ && order_ != ZoneOrder::kCostRatio;
  if (!gives_up && WantedUnits(view, Runs::kNothing, false) == Wanted::kOnDemand) {
    step.otherwise = Step::Else::kOnDemand;
    step.restart = true;
    step.on_demand_zone = order_ == ZoneOrder::kCostRatio ? 0 : view.zone.value_or(0);
  }
  return step;
}

Step UniformProgressPolicy::Decide(const View& view) {
  const size_t zones = view.trace->zones.size();
  tick_hours_ = view.tick_hours;
  met_.resize(zones);
  next_look_.resize(zones, 0);
  next_probe_.resize(zones, 0);
  asks_ = false;
  // The end: only on-demand units can still finish in time.
  const double needed = WholeTicksUp(view.work_hours + view.job->start_hours, view.tick_hours);
  const double left = WholeTicksDown(view.job->deadline_hours - view.hours, view.tick_hours);
  if (ends_on_demand_ || needed >= left) {
    ends_on_demand_ = true;
    if (view.runs == Runs::kOnDemand) return {};
    const size_t zone = view.runs == Runs::kSpot ? *view.zone : CheapestOnDemandZone(view);
    return {.otherwise = Step::Else::kOnDemand, .on_demand_zone = zone, .why = "the last moment"};
  }
  if (view.runs != Runs::kNothing) last_zone_ = view.zone;
  if (order_ != ZoneOrder::kCheapest && main_zone_) {
    if (view.runs != Runs::kSpot || view.zone != main_zone_) {
      Count(*main_zone_, false);
      main_zone_.reset();
    } else if (view.hours >= next_look_[*main_zone_] - 1e-9) {
      Count(*main_zone_, true);
      next_look_[*main_zone_] = view.hours + Every();
      if (order_ == ZoneOrder::kCostRatio) next_probe_[*main_zone_] = next_look_[*main_zone_];
    }
  }
  const Wanted wanted = WantedUnits(view, view.runs, true);
  if (wanted == Wanted::kOnDemand) {
    if (view.runs == Runs::kOnDemand) return {};
    const size_t zone = view.runs == Runs::kSpot || order_ != ZoneOrder::kCostRatio ? view.zone.value_or(0) : 0;
    return {.otherwise = Step::Else::kOnDemand, .on_demand_zone = zone, .why = "behind the line"};
  }
  asks_ = true;
  return AskZones(view);
}

}  // namespace medley::cli::traces
