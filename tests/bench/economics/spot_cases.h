// The jobs of the published comparison, and others on the same records that no parameter was chosen by.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "cli/traces/trace.h"
#include "cli/traces/world.h"

namespace medley::bench {

struct SpotCase {
  std::string set;     // published, other, counts
  std::string figure;  // v100, deadline_sensitivity, region_scaling
  std::string scenario;
  cli::traces::Trace trace;  // its zones, in their order
  cli::traces::TraceJob job;
  double window_start_hours = 0;
  std::map<std::string, double> published;  // USD by policy of the authors' simulator; empty: none
};

struct SpotRecords {
  cli::traces::Trace v100;  // units are p3.2xlarge
  // Units are a3-highgpu-8g, one where at least one of 16 instances with one GPU was launched, as the authors count.
  cli::traces::Trace h100;
  cli::traces::Trace h100_gpus;  // units are GPUs, as recorded
  cli::traces::Egress egress;
  std::filesystem::path folder;
};

// The folder is ../shared/data/spot, or one like it.
absl::StatusOr<SpotRecords> ReadSpotRecords(const std::filesystem::path& folder);

// Every window with a published optimum.
absl::StatusOr<std::vector<SpotCase>> PublishedCases(const SpotRecords& records);
// Jobs of the same kinds in windows and zones that are not among the published ones.
std::vector<SpotCase> OtherCases(const SpotRecords& records);
// Jobs of 4, 8 and 16 GPUs of the H100 record, which need all of them in one zone.
std::vector<SpotCase> CountCases(const SpotRecords& records);

// The policies that a case is run with, by name; "optimum" knows the future.
std::vector<std::string> SpotPolicies();
// Errors: those of cli::traces::Simulate; NotFound for a name that is not among SpotPolicies().
absl::StatusOr<cli::traces::Outcome> RunSpotCase(const SpotCase& spot_case, const cli::traces::Egress& egress,
                                                 const std::string& policy);

}  // namespace medley::bench
