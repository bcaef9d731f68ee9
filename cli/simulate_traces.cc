#include "cli/simulate_traces.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/run/manifests.h"
#include "cli/traces/report.h"
#include "common/base/quantity.h"
#include "common/base/status.h"
#include "common/model/plan_result.h"
#include "operator/api/resource_pool.h"
#include "operator/api/training_job.h"

namespace medley::cli {
namespace {

constexpr double kSecondsOfHour = 3600;
constexpr char kTraceAnnotation[] = "run.medley.dev/trace";

struct TracedJob {
  std::string name;
  double deadline_hours = 0;
  std::string pool;          // with spot units
  std::string trace;         // its record
  double on_demand_usd = 0;  // per unit and hour, of another pool of the file; 0: none has a fixed price
};

absl::StatusOr<double> HoursOf(const char* flag, const std::string& text) {
  const auto duration = base::ParseDuration(text);
  if (!duration.ok()) return base::InvalidArgument("{} {}: must be a duration, as in 12m or 1h30m", flag, text);
  return base::ToSeconds(*duration) / kSecondsOfHour;
}

// The pool that has a record, and the price of on-demand units.
absl::StatusOr<TracedJob> ReadTracedJob(const std::string& file, const std::filesystem::path& folder) {
  MEDLEY_ASSIGN_OR_RETURN(const Manifests manifests, LoadManifests(file));
  const auto job = ops::TrainingJob::FromObject(manifests.job);
  if (!job.ok()) return base::Annotate(job.status(), file);
  TracedJob out;
  out.name = job->name();
  out.deadline_hours = job->objective.deadline_seconds / kSecondsOfHour;
  if (!(out.deadline_hours > 0)) {
    return base::InvalidArgument("{}: spec.objective.deadline: a job on traces needs a deadline, as in 60h", file);
  }
  for (const kube::Object& object : manifests.pools) {
    auto pool = ops::ResourcePool::FromObject(object);
    if (!pool.ok()) return base::Annotate(pool.status(), file);
    if (!job->pools.empty() && std::count(job->pools.begin(), job->pools.end(), pool->name) == 0) continue;
    const std::string annotated = object.String("/metadata/annotations/run.medley.dev~1trace");
    const std::string record = annotated.empty() ? pool->name : annotated;
    std::error_code ignored;
    const bool recorded = std::filesystem::exists(folder / (record + ".csv"), ignored) ||
                          std::filesystem::exists(folder / (record + ".csv.gz"), ignored);
    if (!annotated.empty() || recorded) {
      if (!out.pool.empty()) {
        return base::InvalidArgument("{}: pools {} and {} both have a record; leave one out of spec.resources.pools",
                                     file, out.pool, pool->name);
      }
      out.pool = pool->name;
      out.trace = record;
    } else if (pool->usd_per_unit_hour > 0 && pool->cls == model::ResourceClass::kGpu) {
      out.on_demand_usd =
          out.on_demand_usd > 0 ? std::min(out.on_demand_usd, pool->usd_per_unit_hour) : pool->usd_per_unit_hour;
    }
  }
  if (out.pool.empty()) {
    return base::NotFound("{}: no pool has a record in {}: name a pool as its file, or annotate it with {}: NAME", file,
                          folder.string(), kTraceAnnotation);
  }
  return out;
}

struct Work {
  double hours = 0;
  int units = 0;
};

// What the planner makes of the job on the pool's units, at their mean price, with a share of the deadline to spare for
// interruptions.
absl::StatusOr<Work> PlanWork(const PlanFlags& flags, const TracedJob& job, const traces::Trace& trace) {
  constexpr double kShareOfDeadline = 2.0 / 3;
  MEDLEY_ASSIGN_OR_RETURN(PricedRequest priced, ReadPricedRequest(flags));
  double sum = 0;
  for (const std::vector<double>& zone : trace.spot_usd) sum += zone.front();
  std::erase_if(priced.request.resources, [&](const model::Resource& resource) {
    return resource.cls == model::ResourceClass::kGpu && resource.name != job.pool;
  });
  for (model::Resource& resource : priced.request.resources) {
    if (resource.name != job.pool) continue;
    resource.price_per_unit_hour = sum / static_cast<double>(trace.zones.size());
    resource.offering.reset();  // the record has its prices
  }
  priced.request.constraints.deadline_seconds = kShareOfDeadline * job.deadline_hours * kSecondsOfHour;
  MEDLEY_ASSIGN_OR_RETURN(const Planned planned, PlanPricedRequest(std::move(priced), flags.file));
  if (!planned.result.plan) {
    std::string reasons;
    for (const model::Reason& reason : planned.result.reasons) reasons += ": " + reason.message;
    return base::FailedPrecondition("{}: no plan on units of {} alone finishes in {:.0f} % of the deadline{}",
                                    flags.file, job.pool, 100 * kShareOfDeadline, reasons);
  }
  Work work;
  const model::PlanRequest& request = planned.request;
  const double samples = request.training.TotalSamples();
  work.hours = samples / planned.result.plan->throughput / kSecondsOfHour;
  for (const auto& stage : planned.result.plan->stages) work.units += stage.units;
  return work;
}

int MostUnits(const traces::Trace& trace) {
  int most = 0;
  for (const std::vector<int>& zone : trace.units) most = std::max(most, *std::max_element(zone.begin(), zone.end()));
  return most;
}

absl::StatusOr<traces::TraceJob> JobOnTrace(const PlanFlags& plan, const TraceFlags& flags, const TracedJob& job,
                                            const traces::Trace& trace) {
  traces::TraceJob run;
  run.deadline_hours = job.deadline_hours;
  if (!flags.work.empty()) {
    MEDLEY_ASSIGN_OR_RETURN(run.work_hours, HoursOf("--work", flags.work));
    run.units = std::max(1, flags.units);
  } else {
    MEDLEY_ASSIGN_OR_RETURN(const Work work, PlanWork(plan, job, trace));
    run.work_hours = work.hours;
    run.units = flags.units > 0 ? flags.units : work.units;
  }
  MEDLEY_ASSIGN_OR_RETURN(run.start_hours, HoursOf("--start", flags.start));
  MEDLEY_ASSIGN_OR_RETURN(run.notice_hours, HoursOf("--notice", flags.notice));
  MEDLEY_ASSIGN_OR_RETURN(run.save_hours, HoursOf("--save", flags.save));
  MEDLEY_ASSIGN_OR_RETURN(run.checkpoint_hours, HoursOf("--checkpoint-every", flags.checkpoint_every));
  const auto bytes = base::ParseQuantity(flags.checkpoint_size);
  if (!bytes.ok() || *bytes < 0) {
    return base::InvalidArgument("--checkpoint-size {}: must be a number of bytes, as in 50G", flags.checkpoint_size);
  }
  run.checkpoint_gb = *bytes / 1e9;
  if (!flags.at.empty()) {
    const auto at = base::ParseTime(flags.at);
    if (!at.ok()) return base::InvalidArgument("--at {}: must be a time like 2025-10-04T00:10:00Z", flags.at);
    const double seconds = std::chrono::duration<double>(*at - trace.begin).count();
    const double last = trace.tick_seconds * static_cast<double>(trace.ticks());
    if (seconds < 0 || seconds >= last) {
      return base::InvalidArgument("--at {}: the record {} begins at {} and has {:.1f} h", flags.at, trace.name,
                                   base::FormatTime(trace.begin), last / kSecondsOfHour);
    }
    run.first_tick = static_cast<size_t>(seconds / trace.tick_seconds);
  }
  const double recorded = trace.tick_seconds * static_cast<double>(trace.ticks() - run.first_tick) / kSecondsOfHour;
  if (recorded + 1e-9 < run.deadline_hours) {
    return base::InvalidArgument(
        "{}: the record ends {:.1f} h after the start of the job, before its deadline of {:.1f} h", trace.name,
        recorded, run.deadline_hours);
  }
  return run;
}

}  // namespace

void AddTraceFlags(CLI::App& command, TraceFlags& flags) {
  command.add_option(
      "--traces", flags.folder,
      "folder with recorded spot capacity and prices (docs/use/traces.md): run the job of FILE, which has "
      "a deadline, on it in simulated time");
  command.add_option("--work", flags.work,
                     "with --traces: hours of work when nothing is interrupted; else by the planner");
  command.add_option("--units", flags.units, "with --traces: units that the job needs in one zone")
      ->check(CLI::Range(1, 1'000'000));
  command.add_option("--start", flags.start, "with --traces: from a unit's start to its first step")
      ->capture_default_str();
  command.add_option("--notice", flags.notice, "with --traces: from the notice of an interruption to the loss")
      ->capture_default_str();
  command.add_option("--save", flags.save, "with --traces: time to save a checkpoint")->capture_default_str();
  command.add_option("--checkpoint-every", flags.checkpoint_every, "with --traces: time between checkpoints")
      ->capture_default_str();
  command
      .add_option("--checkpoint-size", flags.checkpoint_size,
                  "with --traces: bytes that a move to another region "
                  "transfers")
      ->capture_default_str();
  command
      .add_option("--longest-gap", flags.longest_gap,
                  "with --traces: holes in the record that are filled with the values before")
      ->capture_default_str();
  command.add_option("--at", flags.at, "with --traces: when the job starts; the begin of the record unless given");
  command
      .add_option("--on-demand-usd", flags.on_demand_usd,
                  "with --traces: price of an on-demand unit per hour, where neither the record nor a pool has it")
      ->check(CLI::PositiveNumber);
}

absl::Status SimulateOnTraces(const PlanFlags& plan, const TraceFlags& flags) {
  const std::filesystem::path folder = flags.folder;
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored))
    return base::NotFound("--traces {}: no such folder", flags.folder);
  MEDLEY_ASSIGN_OR_RETURN(const TracedJob job, ReadTracedJob(plan.file, folder));
  traces::ReadOptions options;
  MEDLEY_ASSIGN_OR_RETURN(const double gap_hours, HoursOf("--longest-gap", flags.longest_gap));
  options.longest_gap_seconds = gap_hours * kSecondsOfHour;
  MEDLEY_ASSIGN_OR_RETURN(traces::Trace trace, traces::ReadTrace(folder, job.trace, options));
  MEDLEY_ASSIGN_OR_RETURN(const traces::Egress egress, traces::ReadEgress(folder));
  const double on_demand = flags.on_demand_usd > 0 ? flags.on_demand_usd : job.on_demand_usd;
  for (double& usd : trace.on_demand_usd) {
    if (!std::isfinite(usd) && on_demand > 0) usd = on_demand;
  }
  if (std::none_of(trace.on_demand_usd.begin(), trace.on_demand_usd.end(),
                   [](double usd) { return std::isfinite(usd); })) {
    return base::InvalidArgument(
        "{}: without on-demand units no deadline can be kept: add a GPU pool with a fixed price, a file {}-prices.csv, "
        "or "
        "--on-demand-usd",
        plan.file, job.trace);
  }
  MEDLEY_ASSIGN_OR_RETURN(const traces::TraceJob run, JobOnTrace(plan, flags, job, trace));
  if (MostUnits(trace) < run.units) {
    std::fprintf(stderr,
                 "medley simulate: no zone of the record %s ever has %d units; --units says how many are needed\n",
                 job.trace.c_str(), run.units);
  }
  MEDLEY_ASSIGN_OR_RETURN(const traces::TraceReport report, traces::RunOnTrace(trace, egress, run, job.name));
  if (plan.output == "json") {
    std::printf("%s\n", traces::TraceJson(report).dump(2).c_str());
  } else {
    std::fputs(traces::TraceText(report).c_str(), stdout);
  }
  return absl::OkStatus();
}

}  // namespace medley::cli
