// Enforces limits without cgroups, by measuring. A process group that has used more than its share of CPU time is
// stopped (SIGSTOP) until its budget is balanced again, as cpulimit does. A session whose resident memory is above its
// limit is killed. RLIMIT_DATA, at four times the limit, stops processes that allocate faster than the node measures.
//
// Less precise than cgroups: CPU shares hold on average over some 100 ms, and a memory peak between two measurements is
// missed. Thread-safe; it has one thread, which sleeps while no process has a limit.
#pragma once

#include <list>
#include <map>
#include <thread>

#include "common/base/mutex.h"
#include "localcluster/node/cpu_budget.h"
#include "localcluster/node/enforcer.h"
#include "localcluster/node/proc_stat.h"

namespace medley::localcluster {

class MeasuredEnforcer final : public Enforcer {
 public:
  explicit MeasuredEnforcer(base::Clock& clock);
  ~MeasuredEnforcer() override;

  absl::StatusOr<std::unique_ptr<Enforcement>> Apply(const std::string& id, const Limits& limits) override;
  std::string name() const override { return "measured use"; }

 private:
  class Lease;
  struct Watched {
    Limits limits;
    std::shared_ptr<Process> process;
    CpuBudget budget;
    std::map<std::pair<pid_t, uint64_t>, base::nanoseconds> cpu;  // CPU time of each member at the last measurement
    base::SteadyTime looked_at;
    base::SteadyTime stopped_until;
    bool stopped = false;
    bool out_of_memory = false;
  };
  using Entry = std::list<Watched>::iterator;

  void Main(std::stop_token stop);
  static void Look(Watched& watched, const std::vector<ProcStat>& all, base::SteadyTime now);

  base::Clock& clock_;
  base::Mutex mutex_;
  base::CondVar changed_;
  std::list<Watched> watched_ ABSL_GUARDED_BY(mutex_);
  std::jthread thread_;
};

}  // namespace medley::localcluster
