// A job on recorded spot capacity in simulated time: what runs, what is lost, what it costs. Deterministic.
//
// Time goes in the ticks of the trace. In each tick, in this order: what ran trains and is paid, spot units that the
// record does not have any more are lost, and the policy decides. Units take `start_hours` from their start to their
// first step. A job runs in one zone at a time, on all of its units.
#pragma once

#include <absl/status/statusor.h>

#include <optional>
#include <string>
#include <vector>

#include "cli/traces/trace.h"

namespace medley::cli::traces {

struct TraceJob {
  double work_hours = 0;      // on all units
  double deadline_hours = 0;  // from the start
  int units = 1;
  double start_hours = 0.2;     // boot, and reading the checkpoint
  double checkpoint_gb = 0;     // what a move to another region transfers
  double checkpoint_hours = 0;  // between two checkpoints; 0: after every step
  double notice_hours = 0;      // from a notice to the loss
  double save_hours = 0;        // that a checkpoint takes; within the notice, nothing is lost
  size_t first_tick = 0;        // of the trace
};

enum class Runs { kNothing, kSpot, kOnDemand };

// What a policy may know. Hours since the start.
struct View {
  const Trace* trace = nullptr;
  const Egress* egress = nullptr;
  const TraceJob* job = nullptr;
  size_t tick = 0;  // of the trace
  double tick_hours = 0;
  double hours = 0;
  double work_hours = 0;  // that is left
  Runs runs = Runs::kNothing;
  std::optional<size_t> zone;                                                       // where it runs, or else ran last
  double starting_hours = 0;                                                        // until its units train
  double at_risk_hours = 0;                                                         // work since the last checkpoint
  double SpotUsd(size_t z) const { return trace->spot_usd[z][tick] * job->units; }  // per hour
  double OnDemandUsd(size_t z) const { return trace->on_demand_usd[z] * job->units; }
  double EgressUsd(size_t from, size_t to) const {
    return egress->UsdPerGb(trace->zones[from], trace->zones[to]) * job->checkpoint_gb;
  }
};

struct Step {
  enum class Else { kStay, kStop, kOnDemand };
  std::vector<size_t> ask;  // zones to ask for spot units, one after the other, until one has them
  Else otherwise = Else::kStay;
  size_t on_demand_zone = 0;
  bool restart = false;  // with kOnDemand in the zone where such units run: others are started
  std::string why;       // of `otherwise`
  std::string why_spot;  // of spot units, once a zone has them; empty: `why`
};

class Policy {
 public:
  virtual ~Policy() = default;
  virtual Step Decide(const View& view) = 0;
  // Zones to ask for units that are given back after a minute, which is paid; asked for once the step is carried out.
  virtual std::vector<size_t> Probes(const View& /*view*/) { return {}; }
  // What the world showed of a zone: a request for spot units was met or not, or running ones live or were lost.
  enum class Source { kRequest, kProbe, kRunning };
  virtual void See(size_t /*zone*/, double /*hours*/, bool /*up*/, Source /*source*/) {}
};

struct TimelineEntry {
  double hours = 0;
  Runs runs = Runs::kNothing;
  std::string zone;
  std::string why;
  double usd = 0;  // spent before
};

struct Outcome {
  bool finished = false;
  bool in_time = false;
  double hours = 0;
  double usd = 0;  // all of it, to the end of the work
  double egress_usd = 0, probe_usd = 0;
  double on_demand_hours = 0, spot_hours = 0;
  double last_tick_usd = 0;    // of the tick in which the work ended, whole
  double whole_ticks_usd = 0;  // as if units were paid until the end of that tick
  int moves = 0;               // to another zone
  int losses = 0;
  double lost_work_hours = 0;
  std::vector<TimelineEntry> timeline;
};

// Until the work is done, or the deadline or the record ends. Errors: InvalidArgument for a job that does not fit into
// the trace (first_tick, units, deadline), and for a decision on a zone that does not exist or has no price.
absl::StatusOr<Outcome> Simulate(const Trace& trace, const Egress& egress, const TraceJob& job, Policy& policy);

}  // namespace medley::cli::traces
