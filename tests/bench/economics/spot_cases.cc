#include "tests/bench/economics/spot_cases.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "cli/traces/csv.h"
#include "cli/traces/optimum.h"
#include "cli/traces/policies.h"
#include "cli/traces/uniform_progress.h"
#include "common/base/status.h"

namespace medley::bench {
namespace {

using cli::traces::Trace;
using cli::traces::TraceJob;

constexpr double kV100OnDemandUsd = 3.06;
constexpr double kStartHours = 0.2;
constexpr double kCheckpointGb = 50;

// The zones in this order; nullopt: one is not in the record.
std::optional<Trace> OnlyZones(const Trace& trace, const std::vector<std::string>& zones) {
  Trace out = trace;
  out.zones = zones;
  out.units.clear();
  out.spot_usd.clear();
  out.on_demand_usd.clear();
  for (const std::string& zone : zones) {
    const auto found = std::find(trace.zones.begin(), trace.zones.end(), zone);
    if (found == trace.zones.end()) return std::nullopt;
    const auto z = static_cast<size_t>(found - trace.zones.begin());
    out.units.push_back(trace.units[z]);
    out.spot_usd.push_back(trace.spot_usd[z]);
    out.on_demand_usd.push_back(trace.on_demand_usd[z]);
  }
  return out;
}

// As the authors' traces: units of eight GPUs, one where anything was launched. Their series was merged from two
// recordings, and keeps the values of tick 695 in ticks 696 to 755, for 50 of which this record has values.
Trace AsPublished(Trace trace) {
  constexpr size_t kHeldFrom = 696, kHeldTo = 756;
  constexpr double kGpus = 8;
  for (size_t z = 0; z < trace.zones.size(); ++z) {
    for (int& units : trace.units[z]) units = std::min(units, 1);
    for (size_t t = kHeldFrom; t < kHeldTo && t < trace.ticks(); ++t) trace.units[z][t] = trace.units[z][kHeldFrom - 1];
    for (double& usd : trace.spot_usd[z]) usd *= kGpus;
    trace.on_demand_usd[z] *= kGpus;
  }
  return trace;
}

size_t TickOf(const Trace& trace, double hours) {
  return static_cast<size_t>(std::ceil(hours * 3600 / trace.tick_seconds - 1e-6));
}

SpotCase NewCase(const std::string& set, const std::string& figure, const std::string& scenario, Trace trace,
                 const TraceJob& job, double start_hours) {
  SpotCase out{set, figure, scenario, std::move(trace), job, start_hours, {}};
  out.job.first_tick = TickOf(out.trace, start_hours);
  return out;
}

}  // namespace

absl::StatusOr<SpotRecords> ReadSpotRecords(const std::filesystem::path& folder) {
  SpotRecords records;
  records.folder = folder;
  MEDLEY_ASSIGN_OR_RETURN(records.v100, cli::traces::ReadTrace(folder, "v100-aws-2023"));
  for (double& usd : records.v100.on_demand_usd) usd = kV100OnDemandUsd;
  MEDLEY_ASSIGN_OR_RETURN(records.h100_gpus,
                          cli::traces::ReadTrace(folder, "h100-gcp-2025", {.longest_gap_seconds = 7200}));
  records.h100 = AsPublished(records.h100_gpus);
  MEDLEY_ASSIGN_OR_RETURN(records.egress, cli::traces::ReadEgress(folder));
  return records;
}

absl::StatusOr<std::vector<SpotCase>> PublishedCases(const SpotRecords& records) {
  MEDLEY_ASSIGN_OR_RETURN(const std::optional<std::string> text,
                          cli::traces::ReadIfPresent(records.folder, "published-costs.csv"));
  if (!text) return base::NotFound("{}: no published-costs.csv.gz", records.folder.string());
  MEDLEY_ASSIGN_OR_RETURN(auto csv, cli::traces::CsvReader::Open(*text, "published-costs.csv"));
  // figure 0, scenario 1, zones 2, policy 3, taskHours 4, checkpointGb 5, restartOverheadHours 6, deadlineHours 7,
  // windowStartHours 8, window 9, region 10, costUsd 11, migrations 12
  std::vector<SpotCase> cases;
  std::map<std::string, size_t> index;
  constexpr double kMost = 1e9;
  while (true) {
    MEDLEY_ASSIGN_OR_RETURN(const bool more, csv.Next());
    if (!more) return cases;
    const std::string policy(csv[3]);
    if (policy == "rc_cr_threshold") continue;  // in one zone
    TraceJob job;
    MEDLEY_ASSIGN_OR_RETURN(job.work_hours, csv.Number(4, 0, kMost));
    MEDLEY_ASSIGN_OR_RETURN(job.checkpoint_gb, csv.Number(5, 0, kMost));
    MEDLEY_ASSIGN_OR_RETURN(job.start_hours, csv.Number(6, 0, kMost));
    MEDLEY_ASSIGN_OR_RETURN(job.deadline_hours, csv.Number(7, 0, kMost));
    MEDLEY_ASSIGN_OR_RETURN(const double start, csv.Number(8, 0, kMost));
    MEDLEY_ASSIGN_OR_RETURN(const double usd, csv.Number(11, 0, kMost));
    const std::string key = fmt::format("{}|{}|{}|{}", csv[0], csv[1], csv[4], csv[8]);
    const auto [found, fresh] = index.emplace(key, cases.size());
    if (fresh) {
      const bool v100 = csv[0] == "v100";
      std::vector<std::string> zones;
      for (const absl::string_view name : absl::StrSplit(absl::string_view(csv[2].data(), csv[2].size()), ' ')) {
        zones.emplace_back(std::string(name.substr(0, name.find('_'))));
      }
      auto trace = OnlyZones(v100 ? records.v100 : records.h100, zones);
      if (!trace) return base::InvalidArgument("{}: a zone is not in the record", csv.Place());
      cases.push_back(NewCase("published", std::string(csv[0]), std::string(csv[1]), *std::move(trace), job, start));
    }
    cases[found->second].published[policy] = usd;
  }
}

std::vector<SpotCase> OtherCases(const SpotRecords& records) {
  std::vector<SpotCase> cases;
  const double v100_deadline = 59.90833333333333, h100_deadline = 51.833333333333336;
  const auto add = [&](const std::string& scenario, const Trace& record, std::vector<std::string> zones, double ratio,
                       double deadline, double start) {
    auto trace = OnlyZones(record, zones);
    if (!trace || TickOf(*trace, start + deadline) > trace->ticks()) return;
    TraceJob job{.work_hours = deadline / ratio,
                 .deadline_hours = deadline,
                 .start_hours = kStartHours,
                 .checkpoint_gb = kCheckpointGb};
    cases.push_back(
        NewCase("other", &record == &records.v100 ? "v100" : "h100", scenario, *std::move(trace), job, start));
  };
  // Every window of the V100 record that is not published, in two sets of zones.
  for (int i = 0; i < 18; ++i) {
    if (i == 3 || i == 5 || i == 7 || i == 8 || i == 14) continue;
    const double start = v100_deadline * i;
    add("us-east-1c us-east-2b us-west-2a", records.v100, {"us-east-1c", "us-east-2b", "us-west-2a"}, 1.5,
        v100_deadline, start);
    add("us-east-1a us-east-2a us-west-2c", records.v100, {"us-east-1a", "us-east-2a", "us-west-2c"}, 1.5,
        v100_deadline, start);
    add("us-east-1d us-east-1f us-east-2a", records.v100, {"us-east-1d", "us-east-1f", "us-east-2a"}, 1.2,
        v100_deadline, start);
  }
  // Windows of the H100 record that begin half a window later.
  for (int i = 0; i < 5; ++i) {
    const double start = h100_deadline * (i + 0.5);
    for (const double ratio : {1.1, 1.3, 2.0}) {
      add("United States", records.h100, {"us-central1-b", "us-east4-a", "us-east5-a", "us-west1-a", "us-west1-b"},
          ratio, h100_deadline, start);
      add("volatile", records.h100,
          {"europe-west1-c", "europe-west3-c", "us-west1-a", "asia-southeast1-c", "us-west1-b"}, ratio, h100_deadline,
          start);
    }
  }
  return cases;
}

std::vector<SpotCase> CountCases(const SpotRecords& records) {
  std::vector<SpotCase> cases;
  const double deadline = 51.833333333333336;
  for (const int units : {1, 4, 8, 16}) {
    for (int i = 0; i < 6; ++i) {
      TraceJob job{.work_hours = deadline / 1.3,
                   .deadline_hours = deadline,
                   .units = units,
                   .start_hours = kStartHours,
                   .checkpoint_gb = kCheckpointGb};
      cases.push_back(NewCase("counts", "h100", fmt::format("{} GPUs", units), records.h100_gpus, job, deadline * i));
    }
  }
  return cases;
}

std::vector<std::string> SpotPolicies() {
  return {"medley", "optimum", "up-s", "up-a", "up-ap", "first-plan", "cheapest-now", "on-demand"};
}

absl::StatusOr<cli::traces::Outcome> RunSpotCase(const SpotCase& spot_case, const cli::traces::Egress& egress,
                                                 const std::string& policy) {
  using cli::traces::UniformProgressPolicy;
  using cli::traces::ZoneOrder;
  if (policy == "optimum") return cli::traces::SimulateOptimum(spot_case.trace, egress, spot_case.job);
  std::unique_ptr<cli::traces::Policy> made;
  if (policy == "medley") made = std::make_unique<cli::traces::MedleyPolicy>();
  if (policy == "up-s") made = std::make_unique<UniformProgressPolicy>(ZoneOrder::kCheapest);
  if (policy == "up-a") made = std::make_unique<UniformProgressPolicy>(ZoneOrder::kAvailable);
  if (policy == "up-ap") made = std::make_unique<UniformProgressPolicy>(ZoneOrder::kCostRatio);
  if (policy == "first-plan") made = std::make_unique<cli::traces::FirstPlanPolicy>();
  if (policy == "cheapest-now") made = std::make_unique<cli::traces::CheapestNowPolicy>();
  if (policy == "on-demand") made = std::make_unique<cli::traces::OnDemandPolicy>();
  if (made == nullptr) return base::NotFound("no policy is named '{}'", policy);
  return cli::traces::Simulate(spot_case.trace, egress, spot_case.job, *made);
}

}  // namespace medley::bench
