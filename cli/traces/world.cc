#include "cli/traces/world.h"

#include <algorithm>
#include <cmath>

#include "common/base/status.h"

namespace medley::cli::traces {
namespace {

constexpr double kDone = 1e-3 / 3600;
constexpr double kProbeHours = 1.0 / 60;

class World {
 public:
  World(const Trace& trace, const Egress& egress, const TraceJob& job, Policy& policy)
      : trace_(trace), job_(job), policy_(policy) {
    view_.trace = &trace;
    view_.egress = &egress;
    view_.job = &job;
    view_.tick_hours = trace.tick_seconds / 3600;
    view_.work_hours = job.work_hours;
  }

  absl::StatusOr<Outcome> Run() {
    while (true) {
      view_.tick = job_.first_tick + tick_;
      view_.hours = static_cast<double>(tick_) * view_.tick_hours;
      if (tick_ > 0) Train();
      if (view_.work_hours <= kDone) break;
      if (view_.hours > job_.deadline_hours - kDone || view_.tick >= trace_.ticks()) break;
      LoseUnits();
      MEDLEY_RETURN_IF_ERROR(Act(policy_.Decide(view_)));
      Pay();
      ++tick_;
    }
    return Finish();
  }

 private:
  bool Has(size_t zone) const { return trace_.units[zone][view_.tick] >= job_.units; }

  // What ran in the tick before.
  void Train() {
    idle_hours_ = view_.tick_hours;
    if (view_.runs == Runs::kNothing) return;
    const double trained = std::max(0.0, view_.tick_hours - view_.starting_hours);
    view_.starting_hours = std::max(0.0, view_.starting_hours - view_.tick_hours);
    const double work = std::min(trained, view_.work_hours);
    view_.work_hours -= work;
    idle_hours_ = trained - work;
    if (job_.checkpoint_hours > 0) {
      view_.at_risk_hours = std::fmod(view_.at_risk_hours + work, job_.checkpoint_hours);
    }
  }

  void LoseUnits() {
    if (view_.runs != Runs::kSpot) return;
    const size_t zone = *view_.zone;
    policy_.See(zone, view_.hours, Has(zone), Policy::Source::kRunning);
    if (Has(zone)) return;
    const bool saved = job_.notice_hours >= job_.save_hours && job_.notice_hours > 0;
    const double lost = saved ? 0 : view_.at_risk_hours;
    view_.work_hours += lost;
    out_.lost_work_hours += lost;
    out_.losses += 1;
    view_.at_risk_hours = 0;
    Become(Runs::kNothing, zone,
           lost > 0 ? "spot units were lost, and work since the last checkpoint" : "spot units were lost");
  }

  void Become(Runs runs, size_t zone, std::string why) {
    out_.timeline.push_back(
        {view_.hours, runs, runs == Runs::kNothing ? "" : trace_.zones[zone], std::move(why), out_.usd});
    view_.runs = runs;
    if (runs == Runs::kNothing) {
      view_.starting_hours = 0;
      return;
    }
    if (view_.zone && *view_.zone != zone) {
      out_.moves += 1;
      const double usd = view_.EgressUsd(*view_.zone, zone);
      out_.egress_usd += usd;
      out_.usd += usd;
    }
    view_.zone = zone;
    view_.starting_hours = job_.start_hours;
    view_.at_risk_hours = 0;  // who leaves saves first
  }

  absl::Status Act(const Step& step) {
    MEDLEY_RETURN_IF_ERROR(Start(step));
    for (const size_t zone : policy_.Probes(view_)) {
      if (zone >= trace_.zones.size())
        return base::InvalidArgument("a policy probes zone {}, which does not exist", zone);
      const bool up = Has(zone);
      if (up) {
        const double usd = view_.SpotUsd(zone) * kProbeHours;
        out_.probe_usd += usd;
        out_.usd += usd;
      }
      policy_.See(zone, view_.hours, up, Policy::Source::kProbe);
    }
    return absl::OkStatus();
  }

  absl::Status Start(const Step& step) {
    for (const size_t zone : step.ask) {
      if (zone >= trace_.zones.size())
        return base::InvalidArgument("a policy asks zone {}, which does not exist", zone);
      const bool up = Has(zone);
      policy_.See(zone, view_.hours, up, Policy::Source::kRequest);
      if (!up) continue;
      Become(Runs::kSpot, zone, step.why_spot.empty() ? step.why : step.why_spot);
      return absl::OkStatus();
    }
    switch (step.otherwise) {
      case Step::Else::kStay:
        break;
      case Step::Else::kStop:
        if (view_.runs != Runs::kNothing) Become(Runs::kNothing, *view_.zone, step.why);
        break;
      case Step::Else::kOnDemand:
        if (step.on_demand_zone >= trace_.zones.size() || !std::isfinite(view_.OnDemandUsd(step.on_demand_zone))) {
          return base::InvalidArgument("on-demand units in zone {} have no price in the trace", step.on_demand_zone);
        }
        if (view_.runs == Runs::kOnDemand && view_.zone == step.on_demand_zone && !step.restart) break;
        Become(Runs::kOnDemand, step.on_demand_zone, step.why);
        break;
    }
    return absl::OkStatus();
  }

  void Pay() {
    out_.last_tick_usd = 0;
    if (view_.runs == Runs::kNothing) return;
    const bool spot = view_.runs == Runs::kSpot;
    out_.last_tick_usd = (spot ? view_.SpotUsd(*view_.zone) : view_.OnDemandUsd(*view_.zone)) * view_.tick_hours;
    out_.usd += out_.last_tick_usd;
    (spot ? out_.spot_hours : out_.on_demand_hours) += view_.tick_hours;
  }

  Outcome Finish() {
    out_.finished = view_.work_hours <= kDone;
    out_.hours = view_.hours - (out_.finished ? idle_hours_ : 0);
    out_.in_time = out_.finished && out_.hours <= job_.deadline_hours + kDone;
    out_.whole_ticks_usd = out_.usd;
    if (out_.finished) out_.usd -= out_.last_tick_usd * idle_hours_ / view_.tick_hours;
    out_.timeline.push_back(
        {out_.hours, Runs::kNothing, "", out_.finished ? "the work is done" : "the time is over", out_.usd});
    return out_;
  }

  const Trace& trace_;
  const TraceJob& job_;
  Policy& policy_;
  View view_;
  Outcome out_;
  size_t tick_ = 0;
  double idle_hours_ = 0;  // of the tick before, after the end of the work
};

}  // namespace

absl::StatusOr<Outcome> Simulate(const Trace& trace, const Egress& egress, const TraceJob& job, Policy& policy) {
  if (job.first_tick >= trace.ticks()) {
    return base::InvalidArgument("the job starts at record {}, but the trace {} has {}", job.first_tick, trace.name,
                                 trace.ticks());
  }
  if (job.units < 1) return base::InvalidArgument("a job needs at least one unit, not {}", job.units);
  if (!(job.work_hours > 0) || !(job.deadline_hours > 0)) {
    return base::InvalidArgument("the work ({} h) and the deadline ({} h) must be greater than 0", job.work_hours,
                                 job.deadline_hours);
  }
  return World(trace, egress, job, policy).Run();
}

}  // namespace medley::cli::traces
