#include "reproductions/heterog/bench/graph/virtual_workers.h"

#include <map>
#include <utility>

#include "common/base/status.h"
#include "reproductions/heterog/hetpipe.h"
#include "scheduler-service/pipeline/timer.h"
#include "tests/unit/scheduler-service/planning/judge_of.h"

namespace medley::reproductions::heterog {
namespace {

// The question with only these devices, and the same links between them.
absl::StatusOr<sched::DeviceProblem> OnDevices(const sched::DeviceProblem& problem, const std::vector<int>& devices) {
  model::PlanRequest request = problem.request();
  request.cluster = {};
  for (const int a : devices) {
    request.cluster.devices.push_back(problem.device(a));
    for (const int b : devices) {
      const model::LinkSpeed& link = problem.Link(a, b);
      if (a == b || link.bytes_per_second == 0) continue;  // of one machine, without limit
      request.cluster.links.push_back(
          {problem.device(a).id, problem.device(b).id, link.latency_seconds, link.bytes_per_second});
    }
  }
  return sched::DeviceProblem::Compile(std::move(request));
}

// For one virtual worker; kForever where the model does not fit.
absl::StatusOr<double> SecondsOn(const sched::DeviceProblem& problem, const std::vector<int>& devices,
                                 const sched::Budget& limits) {
  MEDLEY_ASSIGN_OR_RETURN(const sched::DeviceProblem part, OnDevices(problem, devices));
  const sched::JudgeOf judge(part);
  sched::PipelineTimer timer(*judge, limits);
  for (const auto& stages : reproductions::heterog::HetPipe(part, limits)) timer.Seconds(stages);
  return timer.best_seconds();
}

}  // namespace

absl::StatusOr<VirtualWorkers> BestVirtualWorkers(const sched::DeviceProblem& problem, const sched::Budget& limits) {
  std::map<std::string, std::vector<int>> by_machine;
  for (int d = 0; d < problem.devices(); ++d) {
    const model::Device& device = problem.device(d);
    by_machine[device.machine.empty() ? device.id : device.machine].push_back(d);
  }
  const std::vector<std::pair<std::string, std::vector<int>>> machines(by_machine.begin(), by_machine.end());
  if (machines.size() > kMostMachines)
    return base::InvalidArgument("virtual workers are for at most {} machines, not {}", kMostMachines, machines.size());
  // By set of machines, as bits: of one virtual worker with all of them, and the most of any partition of them.
  const size_t sets = size_t{1} << machines.size();
  std::vector<double> alone(sets, 0), rate(sets, 0);
  std::vector<size_t> first(sets, 0);  // the virtual worker with the lowest machine; 0: not used
  for (size_t set = 1; set < sets && !limits.Spent(); ++set) {
    std::vector<int> devices;
    for (size_t m = 0; m < machines.size(); ++m) {
      if ((set >> m & 1) != 0) devices.insert(devices.end(), machines[m].second.begin(), machines[m].second.end());
    }
    MEDLEY_ASSIGN_OR_RETURN(const double seconds, SecondsOn(problem, devices, limits));
    alone[set] = 1 / seconds;
  }
  for (size_t set = 1; set < sets; ++set) {
    const size_t lowest = set & (~set + 1), rest = set ^ lowest;
    rate[set] = rate[rest];
    for (size_t with = rest;; with = (with - 1) & rest) {
      const size_t worker = with | lowest;
      const double sum = alone[worker] + rate[set ^ worker];
      if (sum > rate[set]) {
        rate[set] = sum;
        first[set] = worker;
      }
      if (with == 0) break;
    }
  }
  VirtualWorkers found;
  for (size_t set = sets - 1; set != 0;) {
    const size_t worker = first[set];
    if (worker != 0) {
      std::vector<std::string>& names = found.workers.emplace_back();
      for (size_t m = 0; m < machines.size(); ++m) {
        if ((worker >> m & 1) != 0) names.push_back(machines[m].first);
      }
    }
    set ^= worker != 0 ? worker : set & (~set + 1);
  }
  if (rate.back() > 0) found.seconds = 1 / rate.back();
  return found;
}

}  // namespace medley::reproductions::heterog
