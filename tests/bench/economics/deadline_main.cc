// deadline_bench FOLDER [SET...] [POLICY...]: runs jobs with deadlines on recorded spot capacity with every policy,
// and prints CSV. FOLDER: as ../shared/data/spot. SET: published, other, counts; all without one. POLICY: as
// SpotPolicies(). tests/bench/economics/deadlines.py makes tables of it.
#include <algorithm>
#include <cstdio>

#include "common/base/status.h"
#include "tests/bench/economics/spot_cases.h"

namespace medley::bench {
namespace {

absl::Status PrintCases(const std::vector<SpotCase>& cases, const SpotRecords& records,
                        const std::vector<std::string>& only) {
  for (const SpotCase& each : cases) {
    for (const std::string& policy : SpotPolicies()) {
      if (!only.empty() && std::find(only.begin(), only.end(), policy) == only.end()) continue;
      const auto outcome = RunSpotCase(each, records.egress, policy);
      if (absl::IsFailedPrecondition(outcome.status())) continue;
      if (!outcome.ok()) return outcome.status();
      std::printf("%s,%s,%s,%.6g,%.6g,%.6g,%s,%.6f,%.6f,%d,%d,%d,%.3f,%.3f\n", each.set.c_str(), each.figure.c_str(),
                  each.scenario.c_str(), each.job.work_hours, each.job.deadline_hours, each.window_start_hours,
                  policy.c_str(), outcome->usd, outcome->whole_ticks_usd - outcome->last_tick_usd,
                  outcome->in_time ? 1 : 0, outcome->moves, outcome->losses, outcome->on_demand_hours,
                  outcome->egress_usd);
    }
    for (const auto& [policy, usd] : each.published) {
      std::printf("%s,%s,%s,%.6g,%.6g,%.6g,paper:%s,%.6f,%.6f,1,0,0,0,0\n", each.set.c_str(), each.figure.c_str(),
                  each.scenario.c_str(), each.job.work_hours, each.job.deadline_hours, each.window_start_hours,
                  policy.c_str(), usd, usd);
    }
  }
  return absl::OkStatus();
}

absl::Status RunDeadlines(const std::string& folder, const std::vector<std::string>& sets,
                          const std::vector<std::string>& only) {
  MEDLEY_ASSIGN_OR_RETURN(const SpotRecords records, ReadSpotRecords(folder));
  std::printf(
      "set,figure,scenario,workHours,deadlineHours,startHours,policy,usd,paperUsd,inTime,moves,losses,onDemandHours,"
      "egressUsd\n");
  const auto wants = [&](const char* set) {
    return sets.empty() || std::find(sets.begin(), sets.end(), set) != sets.end();
  };
  if (wants("published")) {
    MEDLEY_ASSIGN_OR_RETURN(const std::vector<SpotCase> cases, PublishedCases(records));
    MEDLEY_RETURN_IF_ERROR(PrintCases(cases, records, only));
  }
  if (wants("other")) MEDLEY_RETURN_IF_ERROR(PrintCases(OtherCases(records), records, only));
  if (wants("counts")) MEDLEY_RETURN_IF_ERROR(PrintCases(CountCases(records), records, only));
  return absl::OkStatus();
}

}  // namespace
}  // namespace medley::bench

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: deadline_bench FOLDER [published|other|counts]... [POLICY]...\n");
    return 1;
  }
  std::vector<std::string> sets, only;
  const std::vector<std::string> policies = medley::bench::SpotPolicies();
  for (int i = 2; i < argc; ++i) {
    const bool policy = std::find(policies.begin(), policies.end(), argv[i]) != policies.end();
    (policy ? only : sets).emplace_back(argv[i]);
  }
  const absl::Status status = medley::bench::RunDeadlines(argv[1], sets, only);
  if (status.ok()) return 0;
  std::fprintf(stderr, "deadline_bench: %s\n", medley::base::Message(status).c_str());
  return 1;
}
