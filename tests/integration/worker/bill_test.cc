// The bill of jobs whose processes are killed and stopped at random moments: its categories sum to what was paid, and
// tests/bench/bill.py, which reads only the logs of the coordinators, steps.jsonl and the lives of the processes, gets
// the same bill: each category within 2 % of the whole.
//
// ./dev test runs 2 seeds, ./dev soak 20. MEDLEY_CHAOS_SEEDS=7-9 runs these.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "common/base/file.h"
#include "common/base/mutex.h"
#include "common/base/testing/patience.h"
#include "common/base/testing/soak.h"
#include "common/base/testing/temp_dir.h"
#include "common/goodput/bill.h"
#include "operator/api/goodput_status.h"
#include "tests/integration/worker/chaos.h"
#include "tests/integration/worker/chaos_jobs.h"

namespace medley::worker::bill_test {
namespace {

namespace fs = std::filesystem;
namespace pb = ::medley::job::v1;

constexpr double kUsdPerHour = 3600;  // so that a unit-second costs a dollar

double Unix(base::WallTime time) { return base::ToSeconds(time.time_since_epoch()); }

// A process of the job, for which it pays.
struct Life {
  std::string name;
  std::string pool;
  pid_t pid = 0;
  base::WallTime began;
  std::optional<base::WallTime> ended;
};

// Notes when the processes of a job begin and end.
class Lives {
 public:
  Lives() : watcher_([this](const std::stop_token& stop) { Watch(stop); }) {}

  void Began(const std::string& pool, pid_t pid) {
    const base::WallTime began = clock_.Now();
    const std::string name = NameOf(pid);
    base::MutexLock lock(mutex_);
    lives_.push_back({name, name.starts_with("coordinator") ? goodput::kCoordinatorPool : pool, pid, began, {}});
  }
  std::vector<Life> All() const {
    base::MutexLock lock(mutex_);
    return lives_;
  }

 private:
  // A process has its variables only when it has become its program.
  std::string NameOf(pid_t pid) const {
    const std::string key = "MEDLEY_MEMBER=";
    const base::SteadyTime deadline = clock_.Steady() + base::Patience(base::seconds(5));
    while (clock_.Steady() < deadline) {
      const std::string environment = base::ReadFile("/proc/" + std::to_string(pid) + "/environ").value_or("");
      const size_t at = environment.find(key);
      if (at != std::string::npos) return environment.c_str() + at + key.size();
      if (HasEnded(pid)) return "";
      clock_.SleepFor(base::milliseconds(1), {});
    }
    ADD_FAILURE() << "process " << pid << " has no name";
    return "";
  }
  void Watch(const std::stop_token& stop) {
    while (clock_.SleepFor(base::milliseconds(10), stop)) {
      base::MutexLock lock(mutex_);
      for (Life& life : lives_) {
        if (!life.ended && HasEnded(life.pid)) life.ended = clock_.Now();
      }
    }
  }
  static bool HasEnded(pid_t pid) {
    const std::string stat = base::ReadFile("/proc/" + std::to_string(pid) + "/stat").value_or("");
    const size_t name = stat.rfind(')');
    return name == std::string::npos || stat.size() < name + 3 || stat[name + 2] == 'Z' || stat[name + 2] == 'X';
  }

  mutable base::SystemClock clock_;
  mutable base::Mutex mutex_;
  std::vector<Life> lives_ ABSL_GUARDED_BY(mutex_);
  std::jthread watcher_;
};

goodput::Account AccountOf(const pb::Observation& seen) {
  goodput::Account account{seen.units().id(), seen.units().first_samples(), seen.samples_done(), {}};
  for (const pb::PoolSeconds& pool : seen.units().pools()) {
    for (const auto& [name, seconds] : pool.seconds()) {
      account.pools[pool.pool()][goodput::ParseCategory(name).value()] = seconds;
    }
  }
  return account;
}

// Counts as the operator does. It is killed now and then, and goes on from the status that it wrote before.
class Counter {
 public:
  Counter(const Lives& lives, uint64_t seed) : lives_(lives), random_(seed) {}

  void Pass(const pb::Observation& seen) {
    Count(seen);
    if (random_.Below(3) == 0) written_ = {status_.ToJson(), until_};
    if (random_.Below(6) == 0 && written_) {  // another operator reads what was written last
      status_ = ops::GoodputStatus::FromJson(written_->first);
      until_ = written_->second;
    }
  }
  void Count(const pb::Observation& seen) {
    if (seen.has_units()) account_ = AccountOf(seen);
    const base::WallTime now = clock_.Now();
    std::vector<goodput::Paid> paid;
    for (const Life& life : lives_.All()) {
      const base::WallTime end = std::min(life.ended.value_or(now), now);
      const base::WallTime over = std::clamp(over_.value_or(end), life.began, std::max(life.began, end));
      Add(life, std::max(life.began, until_), over, goodput::Paid::Use::kHeld, paid);
      Add(life, std::max(over, until_), end, goodput::Paid::Use::kIdle, paid);
    }
    until_ = now;
    goodput::Count(paid, account_.id.empty() ? nullptr : &account_, status_.bill);
  }
  void Over() { over_ = clock_.Now(); }

  // For bill.py.
  void Write(const fs::path& folder) const {
    kube::Json lives = kube::Json::array();
    double paid = 0;
    for (const Life& life : lives_.All()) {
      const base::WallTime end = std::min(life.ended.value_or(until_), until_);
      lives.push_back({{"name", life.name}, {"pool", life.pool}, {"began", Unix(life.began)}, {"ended", Unix(end)}});
      paid += std::max(0.0, Unix(end) - Unix(life.began));
    }
    std::ofstream(folder / "lives.json") << kube::Json({{"lives", lives}, {"over", Unix(over_.value())}}).dump();
    std::ofstream(folder / "bill.json") << status_.ToJson().dump();
    EXPECT_NEAR(status_.bill.Seconds().Sum(), paid, 0.01 * paid);
    EXPECT_NEAR(status_.bill.Usd().Sum(), paid * kUsdPerHour / 3600, 0.01 * paid);
  }

 private:
  static void Add(const Life& life, base::WallTime from, base::WallTime until, goodput::Paid::Use use,
                  std::vector<goodput::Paid>& paid) {
    const double seconds = base::ToSeconds(until - from);
    if (seconds > 0) paid.push_back({life.pool, seconds, seconds * kUsdPerHour / 3600, use});
  }

  const Lives& lives_;
  base::Rng random_;
  base::SystemClock clock_;
  goodput::Account account_;
  ops::GoodputStatus status_;
  base::WallTime until_{};
  std::optional<base::WallTime> over_;
  std::optional<std::pair<kube::Json, base::WallTime>> written_;
};

// Whether the script agrees.
bool ScriptAgrees(const fs::path& folder) {
  const char* source = std::getenv("MEDLEY_SOURCE_DIR");
  const std::string script = std::string(source == nullptr ? "." : source) + "/tests/bench/bill.py";
  return std::system(("python3 " + script + " " + folder.string()).c_str()) == 0;
}

TEST(BillTest, TheBillOfADisturbedJobAddsUpAndAgreesWithTheLogs) {
  const ChaosLength length{.rows = 800, .actions = 10};
  const auto data = fs::temp_directory_path() / ("medley-bill-" + std::to_string(getpid()) + ".csv");
  CopyLines(ExampleData("adult.train.csv"), data, length.rows);
  const auto [first, last] = ChaosSeeds(static_cast<uint64_t>(base::Rounds(2, 20)));
  for (uint64_t seed = first; seed <= last && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Lives lives;
    JobOptions options = WithTables();
    options.train = data;
    options.epochs = length.epochs;
    options.batch_size = length.batch_size;
    options.checkpoint_interval = "1s";
    options.place = [&lives](const std::string& pool, pid_t pid) { lives.Began(pool, pid); };
    JobHarness job(options);
    Counter counter(lives, seed);
    Chaos chaos(seed, length, false, Synchronous(), job);
    chaos.Begin();
    while (chaos.actions() < length.actions && job.Steps() < length.steps()) {
      chaos.Act();
      counter.Pass(job.Observe());
    }
    const pb::Observation end = job.WaitForEnd(base::seconds(180));
    ASSERT_EQ(end.phase(), pb::JOB_PHASE_COMPLETE) << end.message() << job.AllLogs();
    counter.Over();
    counter.Pass(end);
    counter.Count(end);  // by an operator that stays
    counter.Write(job.folder());
    if (ScriptAgrees(job.folder())) continue;
    const fs::path kept = fs::temp_directory_path() / ("medley-bill-failed-" + std::to_string(seed));
    base::RemoveTempDir(kept);
    fs::create_directories(kept);
    for (const auto& file : fs::directory_iterator(job.folder())) {
      if (file.is_regular_file()) fs::copy_file(file.path(), kept / file.path().filename());
    }
    fs::copy_file(job.checkpoints() / "steps.jsonl", kept / "steps.jsonl");
    ADD_FAILURE() << "the script disagrees; the logs are in " << kept;
  }
  fs::remove(data);
}

}  // namespace
}  // namespace medley::worker::bill_test
