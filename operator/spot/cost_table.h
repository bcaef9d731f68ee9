// What it is expected to cost to finish a job before its deadline, from every state that it can come to. Immutable.
//
// A dynamic program over work that is left and spare time, both in hours. Spare time is what may be lost before nothing
// but on-demand units, started at once, finishes in time. So running keeps it, waiting and starting use it up, and at 0
// the job ends on on-demand units. States:
//
//   running      in zone z on spot units
//   lost         zone z has just lost them; whether other zones have units is not known
//   waiting      zone z is where the checkpoint is, and no zone had units a moment ago
//   on demand    in zone z; it tries spot zones as they come back, while there is spare time for it
//
// A zone that is up is lost at its rate (zone_record.h), and one that is down comes back at its rate, independently of
// the others. Prices stay as they are. Asking a zone that has no units costs nothing.
#pragma once

#include <span>
#include <vector>

#include "operator/spot/zone_record.h"

namespace medley::ops::spot {

// Money in USD, time in hours.
struct ZoneOffer {
  double spot_usd_per_hour = 0;       // of all units of the job; infinite: the zone has no spot units
  double on_demand_usd_per_hour = 0;  // infinite: it has no on-demand units
  ZoneRates rates;
  double speed = 1;                // of the job there: hours of work per hour. The slower ones have no on-demand units
  std::vector<double> egress_usd;  // to move the checkpoint from this zone to each zone; 0 to itself
};

struct TableQuestion {
  std::vector<ZoneOffer> zones;  // at least one, one with on-demand units
  double start_hours = 0;        // from a unit's start to its first step
  double work_hours = 0;         // at speed 1; the most that the table covers
  double spare_hours = 0;        // the most that the table covers
};

class CostTable {
 public:
  explicit CostTable(TableQuestion question);

  const TableQuestion& question() const { return question_; }
  // USD. Work and spare time above what the table covers count as the most; between its points it interpolates.
  double Running(size_t zone, double work, double spare) const { return At(running_, zone, work, spare); }
  // As Running, if the job never leaves the zone before it loses its units there.
  double RunningUntilLost(size_t zone, double work, double spare) const { return At(until_lost_, zone, work, spare); }
  double Waiting(size_t zone, double work, double spare) const { return At(waiting_, zone, work, spare); }
  double OnDemand(size_t zone, double work, double spare) const { return At(on_demand_, zone, work, spare); }
  // To start in zone `to` with the checkpoint in `from`, on units that can be had. Infinite where spot units cannot
  // start without a risk for the deadline.
  double StartSpot(size_t from, size_t to, double work, double spare) const;
  double StartOnDemand(size_t from, size_t to, double work, double spare) const;

 private:
  using Layer = std::vector<double>;  // by zone, work and spare time
  // What could be started, and the chance that it can be.
  struct Chance {
    double chance = 0, usd = 0;
  };
  static double Expect(std::vector<Chance>& chances, double otherwise);
  double At(const Layer& layer, size_t zone, double work, double spare) const;
  // After the step of work from point `w` in the zone, which uses up spare time where the zone is slow.
  double After(const Layer& layer, size_t zone, size_t w, size_t s) const;
  size_t Index(size_t zone, size_t w, size_t s) const { return (zone * (works_ + 1) + w) * (spares_ + 1) + s; }
  void FillOnDemand(size_t w, size_t s);
  void FillWaiting(size_t w, size_t s);
  void FillLost(size_t w, size_t s);
  void FillRunning(size_t w, size_t s);
  double FinishOnDemand(size_t from, size_t w) const;  // the cheapest zone, to the end

  TableQuestion question_;
  double fastest_ = 1;                     // speed on demand
  size_t works_ = 0, spares_ = 0;          // points beside 0
  double work_step_ = 0, spare_step_ = 0;  // hours
  size_t start_steps_ = 1;                 // of spare time that a start uses up
  Layer running_, until_lost_, lost_, waiting_, on_demand_;
  std::vector<Chance> chances_;  // scratch of the constructor
};

}  // namespace medley::ops::spot
