#include "localcluster/node/measured_enforcer.h"

#include <signal.h>

#include <set>
#include <utility>

#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/status.h"
#include "localcluster/node/cgroup_enforcer.h"

namespace medley::localcluster {
namespace {

constexpr base::milliseconds kPeriod{20};
constexpr base::milliseconds kBurst{100};
constexpr int kTicksToScan = 10;  // every 200 ms all of /proc is scanned for new members

}  // namespace

class MeasuredEnforcer::Lease final : public Enforcement {
 public:
  Lease(MeasuredEnforcer& owner, Limits limits) : owner_(owner), limits_(limits) {}
  ~Lease() override {
    if (!attached_) return;
    base::MutexLock lock(owner_.mutex_);
    if (entry_->stopped) entry_->process->Signal(SIGCONT);
    owner_.watched_.erase(entry_);
  }

  void Prepare(SpawnSpec& spec) const override {
    if (!limits_.memory_bytes) return;
    spec.data_limit_bytes = 4 * *limits_.memory_bytes;
    // A process reads the limit of its control group, and here it has none.
    spec.environment.push_back(fmt::format("MEDLEY_MEMORY_LIMIT={}", *limits_.memory_bytes));
  }
  void Attach(std::shared_ptr<Process> process) override {
    process_ = std::move(process);
    if (limits_.any()) Watch();
  }
  absl::Status SetCores(std::optional<double> cores) override {
    limits_.cores = cores;
    if (process_ != nullptr && !attached_ && cores) Watch();
    if (!attached_) return absl::OkStatus();
    base::MutexLock lock(owner_.mutex_);
    entry_->limits.cores = cores;
    entry_->budget = CpuBudget(cores.value_or(1), kBurst);
    entry_->stopped_until = {};
    if (std::exchange(entry_->stopped, false)) process_->Signal(SIGCONT);
    return absl::OkStatus();
  }
  bool OutOfMemory() override {
    if (!attached_) return false;
    base::MutexLock lock(owner_.mutex_);
    return entry_->out_of_memory;
  }

 private:
  void Watch() {
    base::MutexLock lock(owner_.mutex_);
    const base::SteadyTime now = owner_.clock_.Steady();
    entry_ = owner_.watched_.insert(owner_.watched_.end(),
                                    {limits_, process_, CpuBudget(limits_.cores.value_or(1), kBurst), {}, now, now});
    attached_ = true;
    owner_.changed_.NotifyAll();
  }

  MeasuredEnforcer& owner_;
  Limits limits_;
  std::shared_ptr<Process> process_;
  bool attached_ = false;
  Entry entry_;
};

MeasuredEnforcer::MeasuredEnforcer(base::Clock& clock) : clock_(clock) {
  thread_ = std::jthread([this](std::stop_token stop) { Main(stop); });
}

MeasuredEnforcer::~MeasuredEnforcer() {
  thread_.request_stop();
  thread_.join();
}

absl::StatusOr<std::unique_ptr<Enforcement>> MeasuredEnforcer::Apply(const std::string&, const Limits& limits) {
  return std::make_unique<Lease>(*this, limits);
}

void MeasuredEnforcer::Main(std::stop_token stop) {
  for (int tick = 0; !stop.stop_requested(); ++tick) {
    std::set<pid_t> known;
    {
      base::MutexLock lock(mutex_);
      if (!changed_.Wait(mutex_, stop, [&] { return !watched_.empty(); })) return;
      for (const Watched& watched : watched_) {
        known.insert(watched.process->pid());
        for (const auto& [id, cpu] : watched.cpu) known.insert(id.first);
      }
    }
    std::vector<ProcStat> all;
    if (tick % kTicksToScan == 0) {
      all = ReadAllProcStats();
    } else {
      for (const pid_t pid : known) {
        if (const auto stat = ReadProcStat(pid)) all.push_back(*stat);
      }
    }
    {
      base::MutexLock lock(mutex_);
      for (Watched& watched : watched_) Look(watched, all, clock_.Steady());
    }
    if (!clock_.SleepFor(kPeriod, stop)) return;
  }
}

void MeasuredEnforcer::Look(Watched& watched, const std::vector<ProcStat>& all, base::SteadyTime now) {
  base::nanoseconds used{0};
  int64_t resident = 0;
  std::map<std::pair<pid_t, uint64_t>, base::nanoseconds> cpu;
  for (const ProcStat& stat : all) {
    if (stat.session != watched.process->pid()) continue;
    const auto before = watched.cpu.find({stat.pid, stat.start_ticks});
    used += stat.cpu - (before == watched.cpu.end() ? base::nanoseconds(0) : before->second);
    cpu[{stat.pid, stat.start_ticks}] = stat.cpu;
    resident += stat.resident_bytes;
  }
  watched.cpu = std::move(cpu);
  if (watched.limits.memory_bytes && resident > *watched.limits.memory_bytes) {
    watched.out_of_memory = true;
    watched.process->Signal(SIGKILL);
    return;
  }
  if (!watched.limits.cores) return;
  const base::nanoseconds stop = watched.budget.Charge(used, now - watched.looked_at);
  watched.looked_at = now;
  if (stop > base::nanoseconds(0)) watched.stopped_until = now + stop;
  const bool stopped = watched.stopped_until > now;
  if (stopped != watched.stopped) watched.process->Signal(stopped ? SIGSTOP : SIGCONT);
  watched.stopped = stopped;
}

absl::StatusOr<std::unique_ptr<Enforcer>> MakeEnforcer(CgroupPolicy policy, const std::string& instance,
                                                       base::nanoseconds cpu_period, base::Clock& clock) {
  if (policy != CgroupPolicy::kOff) {
    const auto mounts = base::ReadFile("/proc/self/mountinfo");
    const auto groups = base::ReadFile("/proc/self/cgroup");
    CgroupLayout layout;
    if (mounts.ok() && groups.ok()) layout = ParseCgroupLayout(*mounts, *groups);
    auto enforcer = CgroupEnforcer::Make(layout, instance, cpu_period, clock);
    if (enforcer.ok()) return std::unique_ptr<Enforcer>(*std::move(enforcer));
    if (policy == CgroupPolicy::kRequired) return enforcer.status();
    base::log::Info("limits are enforced by measuring, as cgroups are not available",
                    {{"why", base::Message(enforcer.status())}});
  }
  return std::unique_ptr<Enforcer>(std::make_unique<MeasuredEnforcer>(clock));
}

}  // namespace medley::localcluster
