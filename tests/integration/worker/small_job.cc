#include "tests/integration/worker/small_job.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "common/base/file.h"
#include "common/base/testing/temp_dir.h"

namespace medley::worker {
namespace pb = ::medley::job::v1;

SmallTable::SmallTable(int rows) : folder_(*base::MakeTempDir("medley-small-table")) {
  CopyLines(ExampleData("adult.train.csv"), file(), rows);
}

SmallTable::~SmallTable() { base::RemoveTempDir(folder_); }

std::filesystem::path FirstRows(const std::string& name, int rows) {
  static const struct Made {
    ~Made() { base::RemoveTempDir(folder); }
    std::filesystem::path folder = *base::MakeTempDir("medley-first-rows");
  } kMade;
  const std::filesystem::path file = kMade.folder / (std::to_string(rows) + "-" + name);
  if (!std::filesystem::exists(file)) CopyLines(ExampleData(name), file, rows);
  return file;
}

JobOptions SmallJob(const std::filesystem::path& train, int epochs) {
  JobOptions options;
  options.train = train;
  options.hidden = {8};
  options.epochs = epochs;
  options.batch_size = 16;
  options.embedding_rows = 512;
  options.checkpoint_interval = "1s";
  return options;
}

std::function<bool(const pb::Observation&)> Reached(int64_t step) {
  return [step](const pb::Observation& seen) { return seen.step() >= step || IsOver(seen); };
}

pb::Observation AfterSwitches(JobHarness& job, int switches, int64_t more) {
  const auto settled = [switches](const pb::Observation& seen) {
    return IsOver(seen) || (seen.switches_size() >= switches && seen.phase() == pb::JOB_PHASE_TRAINING &&
                            seen.missing_members().empty());
  };
  const int64_t step = job.WaitFor(settled, base::seconds(60)).step();
  return job.WaitFor(Reached(step + more), base::seconds(60));
}

pb::Observation Switch(JobHarness& job, const JobShape& shape, const std::string& reason) {
  const Slowed slowed(job, "t0-0");
  const int before = job.Observe().switches_size();
  job.Apply(shape, reason);
  return AfterSwitches(job, before + 1, 3);
}

std::vector<double> FirstLosses(JobHarness& job, int64_t steps) {
  const auto written = [&](const pb::Observation&) { return static_cast<int64_t>(job.Steps()) >= steps; };
  job.WaitFor(written, base::seconds(60));
  std::vector<double> losses = job.Losses();
  EXPECT_GE(std::ssize(losses), steps);
  losses.resize(static_cast<size_t>(steps));
  return losses;
}

int KillAtRandom(JobHarness& job, base::Rng& rng, const RandomKills& how,
                 const std::function<void(int64_t step)>& kill) {
  int64_t at = 0;
  for (int kills = 0; kills < how.kills; ++kills) {
    at += how.least_steps + static_cast<int64_t>(rng.Below(how.steps));
    const pb::Observation now = job.WaitFor(Reached(at), how.patience);
    if (IsOver(now)) return kills;
    at = std::max(at, now.step());
    if (kill != nullptr) {
      kill(now.step());
      continue;
    }
    const std::vector<std::string> members = job.Running();
    if (members.empty()) {
      ADD_FAILURE() << "no member runs" << job.AllLogs();
      return 0;
    }
    const std::string& victim = members[rng.Below(members.size())];
    std::printf("kill %s at step %ld\n", victim.c_str(), static_cast<long>(now.step()));
    job.Kill(victim);
    if (how.killed != nullptr) how.killed->insert(victim);
  }
  return how.kills;
}

pb::Observation ExpectComplete(JobHarness& job, int64_t samples, base::seconds timeout) {
  const pb::Observation end = job.WaitForEnd(timeout);
  EXPECT_EQ(end.phase(), pb::JOB_PHASE_COMPLETE) << end.message() << job.AllLogs();
  EXPECT_EQ(end.samples_done(), samples);
  return end;
}

}  // namespace medley::worker
