// Decides what a job with a deadline does now, where spot capacity comes and goes. Pure.
//
// The deadline is a promise: nothing is decided after which on-demand units, started at once, could not finish in time
// if the worst happened before the next decision. Within that, the least expected cost decides (cost_table.h): the
// price of a zone counts with the work, moves and starts that its interruptions will cost, and on-demand units are
// taken when they cost less than to wait for spot units, which is at the latest when no spare time is left.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/spot/cost_table.h"

namespace medley::ops::spot {

struct SpotState {
  enum class Runs { kNothing, kSpot, kOnDemand };
  Runs runs = Runs::kNothing;
  std::optional<size_t> zone;  // where it runs, or else where its checkpoint is; nullopt: it never ran
  double starting_hours = 0;   // until the units that it has train
  double work_hours = 0;       // that is left, at speed 1
  double hours_to_deadline = 0;
  double hours_to_next_look = 0;  // when something is decided next, at the latest
  double work_at_risk_hours = 0;  // trained again after a loss: since the last checkpoint
  // A move that is not forced saves at least this share of the cost of staying, and waiting at least this share of what
  // on-demand units cost.
  double min_saving = 0.05;
};

struct SpotDecision {
  enum class Act { kStay, kWait, kSpot, kOnDemand };
  // Zones to ask for spot units, one after the other, until one has them; those that the job would rather not have are
  // left out. When none has them, or the list is empty, `otherwise`.
  std::vector<size_t> ask;
  Act otherwise = Act::kStay;
  size_t on_demand_zone = 0;  // with Act::kOnDemand
  double expected_usd = 0;    // from now to the end, of `otherwise`
  double spare_hours = 0;
  const char* reason =
      "";  // CamelCase: NoSpareTime, Cheapest, CheaperZone, WaitsForSpot, OnDemandIsCheaper, SpotIsBack
};

// `chances`: of each zone, that it has spot units now.
SpotDecision DecideSpot(const CostTable& table, const SpotState& state, const std::vector<double>& chances);

// Hours that may be lost before on-demand units, started now, are needed to finish in time.
double SpareHours(const SpotState& state, double start_hours, double fastest_on_demand);

// The numbers behind the decision, for an Event. `names`: of the zones.
std::string Explain(const CostTable& table, const SpotState& state, const SpotDecision& decision,
                    const std::vector<std::string>& names);

}  // namespace medley::ops::spot
