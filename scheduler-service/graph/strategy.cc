#include "scheduler-service/graph/strategy.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "common/base/status.h"
#include "common/model/allreduce.h"
#include "common/model/allreduce_algorithm.h"
#include "common/model/device.h"
#include "common/model/execution_plan.h"
#include "common/model/operation_range.h"
#include "common/model/sync.h"
#include "scheduler-service/simulate/rank.h"

namespace medley::sched {
namespace {

using model::AllreduceAlgorithm;

constexpr double kRounding = 1e-9;
constexpr std::array<const char*, kReplicaActions> kNames = {"EV-PS", "EV-AR", "CP-PS", "CP-AR"};

double SecondsOfModel(const DeviceProblem& problem, int d) { return problem.WorkOf(0, problem.layers(), d).At(1); }

int FastestDevice(const DeviceProblem& problem) {
  int fastest = 0;
  for (int d = 1; d < problem.devices(); ++d) {
    if (SecondsOfModel(problem, d) < SecondsOfModel(problem, fastest)) fastest = d;
  }
  return fastest;
}

// How the replicas on all devices add gradients of one size.
class Reductions {
 public:
  explicit Reductions(const DeviceProblem& problem) : problem_(problem) {
    std::map<std::string, std::vector<int>> machines;
    for (int d = 0; d < problem.devices(); ++d) {
      const model::Device& device = problem.device(d);
      const std::string key = device.machine.empty() ? "/" + device.id : device.machine;
      machines[key].push_back(d);
      whole_.push_back(d);
    }
    for (auto& [name, devices] : machines) by_machine_.push_back(std::move(devices));
    std::ranges::sort(by_machine_);
  }

  model::Sync Allreduce(double bytes) const {
    model::Sync sync{.kind = model::SyncKind::kAllreduce, .algorithm = AllreduceAlgorithm::kRing};
    if (by_machine_.size() == 1 || by_machine_.size() == whole_.size()) return sync;
    const model::ReduceLevel inner{by_machine_, AllreduceAlgorithm::kRing};
    model::ReduceLevel outer{{{}}, AllreduceAlgorithm::kRing};
    for (const std::vector<int>& machine : by_machine_) outer.groups[0].push_back(machine.front());
    const std::vector<model::ReduceLevel> flat = {{{whole_}, AllreduceAlgorithm::kRing}};
    if (Seconds({inner, outer}, bytes) >= Seconds(flat, bytes)) return sync;
    model::HierarchyLevel& level = sync.hierarchy.emplace_back();
    level.algorithm = AllreduceAlgorithm::kRing;
    for (const std::vector<int>& machine : by_machine_) {
      std::vector<std::string>& ids = level.groups.emplace_back();
      for (const int d : machine) ids.push_back(problem_.device(d).id);
    }
    return sync;
  }

  // By the device that ends first. `busy`: seconds of what each device adds so far, and then of these too.
  model::Sync Server(double bytes, std::vector<double>& busy) const {
    const auto link = [this](int a, int b) { return problem_.Link(a, b); };
    size_t best = 0;
    double best_end = kForever;
    for (size_t d = 0; d < whole_.size(); ++d) {
      const double end =
          busy[d] + model::ServedSeconds(static_cast<int>(whole_.size()), link, bytes, static_cast<int>(d));
      if (end >= best_end * (1 - kRounding)) continue;
      best = d;
      best_end = end;
    }
    busy[best] = best_end;
    return {.kind = model::SyncKind::kAllreduce,
            .algorithm = AllreduceAlgorithm::kCentralized,
            .root = problem_.device(static_cast<int>(best)).id};
  }

 private:
  double Seconds(const std::vector<model::ReduceLevel>& levels, double bytes) const {
    return model::HierarchicalSeconds(
        levels, [this](int a, int b) { return problem_.Link(a, b); }, bytes);
  }

  const DeviceProblem& problem_;
  std::vector<int> whole_;
  std::vector<std::vector<int>> by_machine_;
};

std::vector<int> CountsOf(const DeviceProblem& problem, const GraphStrategy& strategy) {
  return strategy.counts.empty() ? ReplicaCounts(problem) : strategy.counts;
}

std::vector<model::Replica> ReplicasOf(const DeviceProblem& problem, const GraphStrategy& strategy, int action) {
  if (!IsReplicated(problem, action)) return {{problem.device(action).id, 1}};
  const auto how = static_cast<Replicas>(action - problem.devices());
  std::vector<int> counts(static_cast<size_t>(problem.devices()), 1);
  if (how == Replicas::kProportionalServer || how == Replicas::kProportionalAllreduce) {
    counts = CountsOf(problem, strategy);
  }
  const double all = std::accumulate(counts.begin(), counts.end(), 0);
  std::vector<model::Replica> replicas;
  for (int d = 0; d < problem.devices(); ++d) {
    replicas.push_back({problem.device(d).id, counts[static_cast<size_t>(d)] / all});
  }
  return replicas;
}

// For the parameters whose gradients replicas of a group add.
double WeightBytes(const DeviceProblem& problem, const OperationGroups& groups, size_t group) {
  double bytes = 0;
  for (const int i : groups.members[group]) {
    if (!problem.profile().model.layers[static_cast<size_t>(i)].sparse) bytes += problem.WeightBytes(i, i + 1);
  }
  return bytes;
}

void Append(int operation, std::vector<model::OperationRange>& ranges) {
  if (!ranges.empty() && ranges.back().end == operation) {
    ++ranges.back().end;
  } else {
    ranges.push_back({operation, operation + 1});
  }
}

}  // namespace

std::string ActionName(const DeviceProblem& problem, int action) {
  if (!IsReplicated(problem, action)) return problem.device(action).id;
  return kNames[static_cast<size_t>(action - problem.devices())];
}

std::string OrderName(OrderBy order) {
  switch (order) {
    case OrderBy::kModel:
      return "in the order of the model";
    case OrderBy::kReady:
      return "first in, first out";
    case OrderBy::kRank:
      return "by rank";
    case OrderBy::kRepaired:
      break;
  }
  return "by rank or first in, first out, repaired";
}

std::vector<int> ReplicaCounts(const DeviceProblem& problem) {
  double slowest = 0;
  for (int d = 0; d < problem.devices(); ++d) slowest = std::max(slowest, SecondsOfModel(problem, d));
  std::vector<int> counts;
  for (int d = 0; d < problem.devices(); ++d) {
    const double seconds = SecondsOfModel(problem, d);
    constexpr double kMost = 1000;  // a device that needs no time
    const double power = seconds > 0 ? std::min(slowest / seconds, kMost) : slowest > 0 ? kMost : 1;
    counts.push_back(std::max(1, static_cast<int>(std::lround(power))));
  }
  return counts;
}

GraphStrategy Canonical(const DeviceProblem& problem, const OperationGroups& groups, GraphStrategy strategy) {
  const std::vector<int> counts = CountsOf(problem, strategy);
  const bool alike = std::ranges::all_of(counts, [&](int count) { return count == counts.front(); });
  bool proportional = false;
  for (size_t g = 0; g < strategy.actions.size(); ++g) {
    int& action = strategy.actions[g];
    if (!IsReplicated(problem, action)) continue;
    auto how = static_cast<Replicas>(action - problem.devices());
    if (alike && how == Replicas::kProportionalServer) how = Replicas::kEvenServer;
    if (alike && how == Replicas::kProportionalAllreduce) how = Replicas::kEvenAllreduce;
    if (WeightBytes(problem, groups, g) == 0) {
      if (how == Replicas::kEvenServer) how = Replicas::kEvenAllreduce;
      if (how == Replicas::kProportionalServer) how = Replicas::kProportionalAllreduce;
    }
    action = ActionOf(problem, how);
    proportional |= how == Replicas::kProportionalServer || how == Replicas::kProportionalAllreduce;
  }
  if (!proportional) strategy.counts.clear();
  return strategy;
}

absl::StatusOr<model::ExecutionPlan> BuildGraphPlan(const DeviceProblem& problem, const OperationGroups& groups,
                                                    const GraphStrategy& given) {
  const GraphStrategy strategy = Canonical(problem, groups, given);
  model::ExecutionPlan plan;
  plan.schedule.kind = problem.request().planner.schedule;
  plan.schedule.micro_batches = problem.micro_batches();
  plan.schedule.bucket_bytes = strategy.bucket_bytes;

  // Operations with the same replicas that agree in the same way.
  struct Kind {
    int action = 0;
    model::Sync sync;
    bool operator==(const Kind&) const = default;
  };
  std::vector<Kind> kinds;
  const Reductions reductions(problem);
  const int fastest = FastestDevice(problem);
  std::vector<double> busy(static_cast<size_t>(problem.devices()), 0);
  std::vector<int> kind_of(static_cast<size_t>(problem.layers()));
  const auto number = [&](Kind kind) {
    const auto found = std::ranges::find(kinds, kind);
    if (found != kinds.end()) return static_cast<int>(found - kinds.begin());
    kinds.push_back(std::move(kind));
    return static_cast<int>(kinds.size()) - 1;
  };
  for (int g = groups.count(); g-- > 0;) {  // as the backward pass completes their gradients
    const int action = strategy.actions[static_cast<size_t>(g)];
    const double bytes = WeightBytes(problem, groups, static_cast<size_t>(g));
    Kind kind{action, {}};
    if (IsReplicated(problem, action) && problem.devices() > 1) {
      const auto how = static_cast<Replicas>(action - problem.devices());
      const bool server = how == Replicas::kEvenServer || how == Replicas::kProportionalServer;
      kind.sync = server ? reductions.Server(bytes, busy) : reductions.Allreduce(bytes);
    }
    const int own = number(kind);
    for (const int i : groups.members[static_cast<size_t>(g)]) {
      const bool table = problem.profile().model.layers[static_cast<size_t>(i)].sparse;
      kind_of[static_cast<size_t>(i)] = table && IsReplicated(problem, action) ? number({fastest, {}}) : own;
    }
  }

  std::vector<int> placement_of(kinds.size(), -1);
  std::vector<bool> used(static_cast<size_t>(problem.devices()), false);
  for (int i = 0; i < problem.layers(); ++i) {
    const auto kind = static_cast<size_t>(kind_of[static_cast<size_t>(i)]);
    if (placement_of[kind] < 0) {
      placement_of[kind] = static_cast<int>(plan.placements.size());
      plan.placements.push_back({{}, ReplicasOf(problem, strategy, kinds[kind].action), kinds[kind].sync});
      for (int d = 0; d < problem.devices(); ++d) {
        const int action = kinds[kind].action;
        if (IsReplicated(problem, action) || action == d) used[static_cast<size_t>(d)] = true;
      }
    }
    Append(i, plan.placements[static_cast<size_t>(placement_of[kind])].operations);
  }
  for (int d = 0; d < problem.devices(); ++d) {
    if (used[static_cast<size_t>(d)]) plan.devices.push_back(problem.device(d));
  }
  if (strategy.order == OrderBy::kModel) return plan;
  const DeviceLinks links{problem.links(), problem.index()};
  const auto order = strategy.order == OrderBy::kRank    ? RankOrder
                     : strategy.order == OrderBy::kReady ? FifoOrder
                                                         : RepairedOrder;
  MEDLEY_ASSIGN_OR_RETURN(plan.order, order(plan, problem.profile(), problem.samples(), &links));
  return plan;
}

}  // namespace medley::sched
