#include "operator/spot/cost_table.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace medley::ops::spot {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kMostWorkPoints = 80;
constexpr double kMostSparePoints = 120;

}  // namespace

CostTable::CostTable(TableQuestion question) : question_(std::move(question)) {
  fastest_ = 0;
  for (const ZoneOffer& zone : question_.zones) {
    if (std::isfinite(zone.on_demand_usd_per_hour)) fastest_ = std::max(fastest_, zone.speed);
  }
  for (ZoneOffer& zone : question_.zones) {
    if (zone.speed < fastest_ * (1 - 1e-9)) zone.on_demand_usd_per_hour = kNever;
  }
  const double work = std::max(question_.work_hours, 1e-6), spare = std::max(question_.spare_hours, 0.0);
  works_ = static_cast<size_t>(std::clamp(std::ceil(work / 0.25), 8.0, kMostWorkPoints));
  work_step_ = work / static_cast<double>(works_);
  // A start takes a whole number of steps.
  const double start = std::max(question_.start_hours, 1e-6);
  const double finest = spare / kMostSparePoints;
  start_steps_ = static_cast<size_t>(std::clamp(std::floor(start / std::max(finest, 1e-9)), 1.0, 3.0));
  spare_step_ = std::max(start / static_cast<double>(start_steps_), finest);
  spares_ = static_cast<size_t>(std::floor(spare / spare_step_ + 1e-9));
  const size_t size = question_.zones.size() * (works_ + 1) * (spares_ + 1);
  for (Layer* layer : {&running_, &until_lost_, &lost_, &waiting_, &on_demand_}) layer->assign(size, 0);
  for (size_t w = 1; w <= works_; ++w) {
    for (size_t s = 0; s <= spares_; ++s) {
      FillOnDemand(w, s);
      FillWaiting(w, s);
      FillLost(w, s);
      FillRunning(w, s);
    }
  }
}

// The cheapest of what can be had, if it is cheaper than `otherwise`.
double CostTable::Expect(std::vector<Chance>& chances, double otherwise) {
  std::sort(chances.begin(), chances.end(), [](const Chance& a, const Chance& b) { return a.usd < b.usd; });
  double usd = 0, left = 1;
  for (const Chance& each : chances) {
    if (!(each.usd < otherwise)) break;
    usd += left * each.chance * each.usd;
    left *= 1 - each.chance;
  }
  return usd + left * otherwise;
}

double CostTable::FinishOnDemand(size_t from, size_t w) const {
  double least = kNever;
  for (size_t to = 0; to < question_.zones.size(); ++to) {
    const ZoneOffer& zone = question_.zones[to];
    const double hours = question_.start_hours + static_cast<double>(w) * work_step_ / zone.speed;
    least = std::min(least, question_.zones[from].egress_usd[to] + hours * zone.on_demand_usd_per_hour);
  }
  return least;
}

double CostTable::After(const Layer& layer, size_t zone, size_t w, size_t s) const {
  const double used = work_step_ / question_.zones[zone].speed - work_step_ / fastest_;
  if (std::abs(used) < 1e-9) return layer[Index(zone, w - 1, s)];
  const double spare = static_cast<double>(s) * spare_step_ - used;
  if (spare < 0) return FinishOnDemand(zone, w);
  return At(layer, zone, static_cast<double>(w - 1) * work_step_, spare);
}

void CostTable::FillOnDemand(size_t w, size_t s) {
  const size_t zones = question_.zones.size();
  for (size_t z = 0; z < zones; ++z) {
    const double hours = work_step_ / question_.zones[z].speed;
    const double stay = hours * question_.zones[z].on_demand_usd_per_hour + After(on_demand_, z, w, s);
    chances_.clear();
    for (size_t to = 0; to < zones && s >= start_steps_; ++to) {
      const ZoneOffer& zone = question_.zones[to];
      chances_.push_back({1 - std::exp(-zone.rates.returns_per_hour * hours),
                          question_.zones[z].egress_usd[to] + zone.spot_usd_per_hour * question_.start_hours +
                              running_[Index(to, w, s - start_steps_)]});
    }
    on_demand_[Index(z, w, s)] = Expect(chances_, stay);
  }
}

void CostTable::FillWaiting(size_t w, size_t s) {
  const size_t zones = question_.zones.size();
  for (size_t z = 0; z < zones; ++z) {
    double best = FinishOnDemand(z, w);
    for (size_t to = 0; to < zones && s >= start_steps_; ++to) {
      best = std::min(best, question_.zones[z].egress_usd[to] +
                                question_.zones[to].on_demand_usd_per_hour * question_.start_hours +
                                on_demand_[Index(to, w, s - start_steps_)]);
    }
    if (s >= 1) {
      chances_.clear();
      for (size_t to = 0; to < zones && s >= 1 + start_steps_; ++to) {
        const ZoneOffer& zone = question_.zones[to];
        chances_.push_back({1 - std::exp(-zone.rates.returns_per_hour * spare_step_),
                            question_.zones[z].egress_usd[to] + zone.spot_usd_per_hour * question_.start_hours +
                                running_[Index(to, w, s - 1 - start_steps_)]});
      }
      best = std::min(best, Expect(chances_, waiting_[Index(z, w, s - 1)]));
    }
    waiting_[Index(z, w, s)] = best;
  }
}

void CostTable::FillLost(size_t w, size_t s) {
  const size_t zones = question_.zones.size();
  for (size_t z = 0; z < zones; ++z) {
    const ZoneOffer& home = question_.zones[z];
    chances_.clear();
    for (size_t to = 0; to < zones && s >= start_steps_; ++to) {
      const ZoneOffer& zone = question_.zones[to];
      if (to == z) continue;
      chances_.push_back({zone.rates.ShareUp(), home.egress_usd[to] + zone.spot_usd_per_hour * question_.start_hours +
                                                    running_[Index(to, w, s - start_steps_)]});
    }
    double best = Expect(chances_, waiting_[Index(z, w, s)]);
    if (s >= 1 + start_steps_) {  // wait for the zone, and do not ask others
      const double back = 1 - std::exp(-home.rates.returns_per_hour * spare_step_);
      const double restart =
          home.spot_usd_per_hour * question_.start_hours + running_[Index(z, w, s - 1 - start_steps_)];
      best = std::min(best, back * restart + (1 - back) * lost_[Index(z, w, s - 1)]);
    }
    lost_[Index(z, w, s)] = best;
  }
}

void CostTable::FillRunning(size_t w, size_t s) {
  const size_t zones = question_.zones.size();
  for (size_t z = 0; z < zones; ++z) {
    const ZoneOffer& zone = question_.zones[z];
    if (!std::isfinite(zone.spot_usd_per_hour)) {
      running_[Index(z, w, s)] = until_lost_[Index(z, w, s)] = kNever;
      continue;
    }
    const double hours = work_step_ / zone.speed;
    const double losses = zone.rates.losses_per_hour * hours;
    // Implicit in `losses`, which may be more than one a step.
    const double paid = zone.spot_usd_per_hour * hours + losses * lost_[Index(z, w, s)];
    until_lost_[Index(z, w, s)] = (After(until_lost_, z, w, s) + paid) / (1 + losses);
    double usd = (After(running_, z, w, s) + paid) / (1 + losses);
    for (size_t to = 0; to < zones && s >= start_steps_; ++to) {
      if (to == z) continue;
      const ZoneOffer& other = question_.zones[to];
      const double moved = zone.egress_usd[to] + other.spot_usd_per_hour * question_.start_hours +
                           running_[Index(to, w, s - start_steps_)];
      const double share = other.rates.ShareUp();
      if (moved < usd) usd = std::min(usd, share * moved + (1 - share) * usd);
    }
    running_[Index(z, w, s)] = usd;
  }
}

double CostTable::At(const Layer& layer, size_t zone, double work, double spare) const {
  const double w = std::clamp(work / work_step_, 0.0, static_cast<double>(works_));
  const double s = std::clamp(spare / spare_step_, 0.0, static_cast<double>(spares_));
  const auto w0 = static_cast<size_t>(w), s0 = static_cast<size_t>(s);
  const size_t w1 = std::min(w0 + 1, works_), s1 = std::min(s0 + 1, spares_);
  const double dw = w - static_cast<double>(w0), ds = s - static_cast<double>(s0);
  const double a = layer[Index(zone, w0, s0)], b = layer[Index(zone, w1, s0)];
  const double c = layer[Index(zone, w0, s1)], d = layer[Index(zone, w1, s1)];
  if (!std::isfinite(a + b + c + d)) return kNever;
  return (1 - ds) * ((1 - dw) * a + dw * b) + ds * ((1 - dw) * c + dw * d);
}

double CostTable::StartSpot(size_t from, size_t to, double work, double spare) const {
  if (spare < question_.start_hours) return kNever;
  return question_.zones[from].egress_usd[to] + question_.zones[to].spot_usd_per_hour * question_.start_hours +
         Running(to, work, spare - question_.start_hours);
}

double CostTable::StartOnDemand(size_t from, size_t to, double work, double spare) const {
  const double egress = question_.zones[from].egress_usd[to];
  const double price = question_.zones[to].on_demand_usd_per_hour;
  const double to_the_end = egress + price * (question_.start_hours + work / question_.zones[to].speed);
  if (spare < question_.start_hours || !std::isfinite(price)) return to_the_end;
  return std::min(to_the_end,
                  egress + price * question_.start_hours + OnDemand(to, work, spare - question_.start_hours));
}

}  // namespace medley::ops::spot
