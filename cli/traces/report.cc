#include "cli/traces/report.h"

#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/format.h"
#include "cli/traces/optimum.h"
#include "cli/traces/policies.h"
#include "cli/traces/uniform_progress.h"
#include "common/base/figure.h"
#include "common/base/status.h"

namespace medley::cli::traces {
namespace {

const char* Word(Runs runs) { return runs == Runs::kSpot ? "spot" : runs == Runs::kOnDemand ? "on demand" : "nothing"; }

std::string Hours(double hours) { return fmt::format("{:.2f} h", hours); }

std::string Verdict(const Outcome& outcome, const TraceJob& job) {
  if (!outcome.finished) return "not finished";
  const double left = job.deadline_hours - outcome.hours;
  return left >= -1e-9 ? Hours(std::max(0.0, left)) + " before the deadline" : Hours(-left) + " late";
}

nlohmann::ordered_json OutcomeJson(const Outcome& outcome) {
  return {{"usd", outcome.usd},
          {"egressUsd", outcome.egress_usd},
          {"finished", outcome.finished},
          {"inTime", outcome.in_time},
          {"hours", outcome.hours},
          {"spotHours", outcome.spot_hours},
          {"onDemandHours", outcome.on_demand_hours},
          {"moves", outcome.moves},
          {"losses", outcome.losses},
          {"lostWorkHours", outcome.lost_work_hours}};
}

}  // namespace

absl::StatusOr<TraceReport> RunOnTrace(const Trace& trace, const Egress& egress, const TraceJob& job,
                                       std::string name) {
  TraceReport report;
  report.job = std::move(name);
  report.run = job;
  report.trace = trace.name;
  const double begin = static_cast<double>(job.first_tick) * trace.tick_seconds;
  report.begin = trace.begin + std::chrono::duration_cast<base::WallTime::duration>(base::FromSeconds(begin));
  MedleyPolicy medley;
  MEDLEY_ASSIGN_OR_RETURN(report.outcome, Simulate(trace, egress, job, medley));
  const auto optimum = SimulateOptimum(trace, egress, job);
  if (optimum.ok()) report.compared.push_back({"the optimum, which knows the future", *optimum});
  std::vector<std::pair<const char*, std::unique_ptr<Policy>>> others;
  others.emplace_back("Uniform Progress, the cheapest zone first",
                      std::make_unique<UniformProgressPolicy>(ZoneOrder::kCheapest));
  others.emplace_back("the zone of the first plan", std::make_unique<FirstPlanPolicy>());
  others.emplace_back("the cheapest units now", std::make_unique<CheapestNowPolicy>());
  others.emplace_back("on-demand units only", std::make_unique<OnDemandPolicy>());
  for (const auto& [title, policy] : others) {
    MEDLEY_ASSIGN_OR_RETURN(Outcome outcome, Simulate(trace, egress, job, *policy));
    report.compared.push_back({title, std::move(outcome)});
  }
  return report;
}

std::string TraceText(const TraceReport& report) {
  const TraceJob& job = report.run;
  const Outcome& outcome = report.outcome;
  std::string text =
      fmt::format("job {}: {} of work on {} of {}, deadline {} after {}\n\n", report.job, Hours(job.work_hours),
                  Counted(job.units, "unit"), report.trace, Hours(job.deadline_hours), base::FormatTime(report.begin));
  text += fmt::format("{:>9}  {:<10} {:<20} {:>10}  {}\n", "hours", "runs on", "zone", "USD so far", "why");
  for (const TimelineEntry& entry : outcome.timeline) {
    text += fmt::format("{:>9.2f}  {:<10} {:<20} {:>10}  {}\n", entry.hours, Word(entry.runs), entry.zone,
                        Usd(entry.usd), entry.why);
  }
  text += fmt::format("\ntotal  {} USD, of which {} for transfer; {}; {}, {}, {} trained again\n", Usd(outcome.usd),
                      Usd(outcome.egress_usd), Verdict(outcome, job), Counted(outcome.moves, "move"),
                      outcome.losses == 1 ? "1 loss" : fmt::format("{} losses", outcome.losses),
                      Hours(outcome.lost_work_hours));
  text += "\nother policies on the same record\n";
  for (const Compared& each : report.compared) {
    text += fmt::format("  {:<45} {:>10} USD  {:>8}  {}\n", each.name, Usd(each.outcome.usd),
                        Percent(outcome.usd, each.outcome.usd), Verdict(each.outcome, job));
  }
  return text;
}

nlohmann::ordered_json TraceJson(const TraceReport& report) {
  nlohmann::ordered_json out;
  out["job"] = report.job;
  out["trace"] = report.trace;
  out["begin"] = base::FormatTime(report.begin);
  out["workHours"] = report.run.work_hours;
  out["deadlineHours"] = report.run.deadline_hours;
  out["units"] = report.run.units;
  out["total"] = OutcomeJson(report.outcome);
  out["timeline"] = nlohmann::ordered_json::array();
  for (const TimelineEntry& entry : report.outcome.timeline) {
    out["timeline"].push_back({{"hours", entry.hours},
                               {"runs", Word(entry.runs)},
                               {"zone", entry.zone},
                               {"usd", entry.usd},
                               {"why", entry.why}});
  }
  out["compared"] = nlohmann::ordered_json::array();
  for (const Compared& each : report.compared) {
    nlohmann::ordered_json row = {{"policy", each.name}};
    row.update(OutcomeJson(each.outcome));
    out["compared"].push_back(std::move(row));
  }
  return out;
}

}  // namespace medley::cli::traces
