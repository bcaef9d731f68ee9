// What tests of disturbed jobs share: a small table, a small model whose steps take milliseconds, kills of random
// members, and what must hold at the end.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/rng.h"
#include "tests/integration/worker/job_harness.h"
#include "tests/integration/worker/slowed.h"

namespace medley::worker {

// The first rows of Adult's training data, as a file in a folder of its own that lives as long as this.
class SmallTable {
 public:
  static constexpr int kRows = 1600;

  explicit SmallTable(int rows = kRows);
  ~SmallTable();
  SmallTable(const SmallTable&) = delete;
  SmallTable& operator=(const SmallTable&) = delete;

  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path file() const { return folder_ / "train.csv"; }

 private:
  const std::filesystem::path folder_;
};

// The first rows of a file of examples/data, as a file that lasts until the process ends. A process of a job reads all
// rows of its data, which takes as long as hundreds of small steps.
std::filesystem::path FirstRows(const std::string& name, int rows);

// A job of four operations, the first of which has a table of 512 rows. A batch has 16 samples: kRows are 100 steps.
// The least interval between checkpoints.
JobOptions SmallJob(const std::filesystem::path& train, int epochs = 3);

// For JobHarness::WaitFor: whether the job has committed the step, or is over.
std::function<bool(const job::v1::Observation&)> Reached(int64_t step);

// Waits until `switches` switches have ended and every member trains, and then until `more` further steps are committed
// or the job is over. What comes next then meets no member that still starts.
job::v1::Observation AfterSwitches(JobHarness& job, int switches, int64_t more = 40);

// Applies a plan and waits for AfterSwitches. The trainer "t0-0", which the plan in force and this one must have, is
// slow until then, so that even a short job does not end before its members have switched.
job::v1::Observation Switch(JobHarness& job, const JobShape& shape, const std::string& reason);

// The losses of the first `steps` steps of a job that has committed them and may train on. So a test can use a job that
// never ends before it, however slow the machine is, and compare what was trained.
std::vector<double> FirstLosses(JobHarness& job, int64_t steps);

struct RandomKills {
  int kills = 10;
  int64_t least_steps = 1;  // between two kills
  uint64_t steps = 60;      // how many numbers of steps, from `least_steps` on, are equally likely
  base::seconds patience{60};
  std::set<std::string>* killed = nullptr;  // to which the names are added, unless `kill` kills
};

// Kills one of `members` each time: by default a random one of those that run. Returns how often: less than asked for
// when the job has ended, and 0 with a failure when none ran.
int KillAtRandom(JobHarness& job, base::Rng& rng, const RandomKills& how,
                 const std::function<void(int64_t step)>& kill = nullptr);

// Waits for the end. A test fails unless the job is complete and has trained `samples` samples, each once.
job::v1::Observation ExpectComplete(JobHarness& job, int64_t samples, base::seconds timeout = base::seconds(120));

}  // namespace medley::worker
