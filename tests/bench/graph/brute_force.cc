#include "tests/bench/graph/brute_force.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <string>

#include "scheduler-service/graph/strategy.h"

namespace medley::bench {

using sched::ActionCount;
using sched::ActionOf;
using sched::IsReplicated;
using sched::OrderBy;
using sched::Replicas;

BruteForce::BruteForce(const sched::GraphQuestion& q) : q_(q), strategy_(Uniform(q, 0, 0, OrderBy::kRank)) {
  const auto devices = static_cast<size_t>(q.problem.devices());
  const std::vector<int> counts = sched::ReplicaCounts(q.problem);
  const double all = std::accumulate(counts.begin(), counts.end(), 0);
  for (int action = 0; action < ActionCount(q.problem); ++action) {
    std::vector<double>& shares = shares_.emplace_back(devices, 0);
    const bool even =
        action == ActionOf(q.problem, Replicas::kEvenServer) || action == ActionOf(q.problem, Replicas::kEvenAllreduce);
    for (size_t d = 0; d < devices; ++d) {
      if (!IsReplicated(q.problem, action)) {
        shares[d] = action == static_cast<int>(d) ? 1 : 0;
      } else {
        shares[d] = even ? 1.0 / static_cast<double>(devices) : counts[d] / all;
      }
    }
  }
  const double sample = 1.0 / q.problem.samples();  // parts are whole samples
  for (const std::vector<int>& members : q.groups.members) {
    std::vector<std::vector<double>>& loads = loads_.emplace_back();
    double& weights = weights_.emplace_back(0);
    for (const int i : members) weights += q.problem.WeightBytes(i, i + 1);
    for (const std::vector<double>& shares : shares_) {
      std::vector<double>& load = loads.emplace_back(devices, 0);
      for (size_t d = 0; d < devices; ++d) {
        if (shares[d] <= 0) continue;
        for (const int i : members) {
          load[d] += q.problem.WorkOf(i, i + 1, static_cast<int>(d)).At(std::max(0.0, shares[d] - sample));
        }
      }
    }
  }
  std::vector<std::set<size_t>> users(static_cast<size_t>(q.problem.layers()));
  const auto group_of = [&](int i) { return static_cast<size_t>(q.groups.group_of[static_cast<size_t>(i)]); };
  for (int i = 0; i < q.problem.layers(); ++i) {
    for (const int input : q.problem.inputs(i)) {
      if (group_of(input) != group_of(i)) users[static_cast<size_t>(input)].insert(group_of(i));
    }
  }
  for (int i = 0; i < q.problem.layers(); ++i) {
    const model::Layer& layer = q.problem.profile().model.layers[static_cast<size_t>(i)];
    const std::set<size_t>& own = users[static_cast<size_t>(i)];
    if (!own.empty()) {
      outputs_.push_back({group_of(i), layer.output_bytes * q.problem.samples(), {own.begin(), own.end()}});
    }
  }
  std::set<std::string> machines;
  for (int d = 0; d < q.problem.devices(); ++d) {
    const std::string& machine = q.problem.device(d).machine;
    cards_ = cards_ && (machine.empty() || machines.insert(machine).second);
  }
}

double BruteForce::Best(double known) {
  best_ = known;
  Branch(0, std::vector<double>(static_cast<size_t>(q_.problem.devices()), 0));
  return best_;
}

double BruteForce::Least(size_t group, size_t device) const {
  const double share = shares_[static_cast<size_t>(strategy_.actions[group])][device];
  return share >= 1 ? 1 : std::max(0.0, share - 1.0 / q_.problem.samples());
}

double BruteForce::Most(size_t group, size_t device) const {
  const double share = shares_[static_cast<size_t>(strategy_.actions[group])][device];
  return share <= 0 ? 0 : std::min(1.0, share + 1.0 / q_.problem.samples());
}

double BruteForce::Receives(size_t decided, size_t device) const {
  double bytes = 0;
  for (size_t g = 0; g < decided; ++g) {
    // Whoever adds, each replica gets the sum or the new parameters.
    if (IsReplicated(q_.problem, strategy_.actions[g]) && Least(g, device) > 0) bytes += weights_[g];
  }
  for (const Output& output : outputs_) {
    if (output.group >= decided) continue;
    double needs = 0, gradients = 0;
    for (const size_t user : output.users) {
      if (user >= decided) continue;
      needs = std::max(needs, Least(user, device) - Most(output.group, device));
      gradients = std::max(gradients, Least(output.group, device) - Most(user, device));
    }
    bytes += output.bytes * (needs + gradients);
  }
  return bytes * q_.problem.CardSecondsPerByte(static_cast<int>(device));
}

void BruteForce::Branch(size_t group, const std::vector<double>& load) {
  for (size_t d = 0; d < load.size(); ++d) {
    if (load[d] >= best_ || (cards_ && Receives(group, d) >= best_)) return;
  }
  if (group < loads_.size()) {
    for (size_t action = 0; action < loads_[group].size(); ++action) {
      std::vector<double> more = load;
      for (size_t d = 0; d < more.size(); ++d) more[d] += loads_[group][action][d];
      strategy_.actions[group] = static_cast<int>(action);
      Branch(group + 1, more);
    }
    return;
  }
  for (const int64_t bytes : BucketSizes(q_.problem)) {
    strategy_.bucket_bytes = bytes;
    for (const OrderBy order : sched::kOrders) {
      strategy_.order = order;
      best_ = std::min(best_, q_.timer.Seconds(strategy_));
    }
  }
}

}  // namespace medley::bench
