#include "tests/bench/graph/brute_force.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "scheduler-service/graph/strategy.h"
#include "scheduler-service/simulate/from_profile.h"

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
  const auto parts = sched::QuotaParts(q.problem.profile());  // a quota holds up a step, not a single path
  for (int i = 0; i < q.problem.layers(); ++i) {
    std::vector<std::vector<double>>& passes = passes_.emplace_back();
    double& fastest = fastest_.emplace_back(sched::kForever);
    for (const std::vector<double>& shares : shares_) {
      std::vector<double>& seconds = passes.emplace_back(devices, 0);
      for (size_t d = 0; d < devices; ++d) {
        if (shares[d] <= 0) continue;
        const std::string& pool = q.problem.device(static_cast<int>(d)).pool;
        const auto& profiles = q.problem.profile().model.layers[static_cast<size_t>(i)].profiles;
        const auto times = std::ranges::find(profiles, pool, &model::LayerProfile::resource_type);
        seconds[d] = q.problem.WorkOf(i, i + 1, static_cast<int>(d)).At(std::max(0.0, shares[d] - sample)) *
                     (1 - times->update_part) * (parts.contains(pool) ? parts.at(pool) : 1) /
                     std::max(1, q.problem.micro_batches());
        fastest = std::min(fastest, seconds[d]);
      }
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

double BruteForce::Crosses(int operation, size_t from, size_t to, double part) const {
  if (from == to) return 0;
  const model::Layer& layer = q_.problem.profile().model.layers[static_cast<size_t>(operation)];
  const double bytes =
      layer.output_bytes * q_.problem.samples() * std::max(0.0, part) / std::max(1, q_.problem.micro_batches());
  double seconds = 0;
  for (const auto& [a, b] : {std::pair(from, to), std::pair(to, from)}) {
    const model::LinkSpeed& link = q_.problem.Link(static_cast<int>(a), static_cast<int>(b));
    seconds += link.latency_seconds + (link.bytes_per_second > 0 ? bytes / link.bytes_per_second : 0);
  }
  return seconds;
}

// Which replicas wait for which others is certain where an operation is on one device, or both have the same parts of
// the batch. Otherwise the one that is ready first counts.
double BruteForce::LongestPath(size_t decided) const {
  const auto devices = static_cast<size_t>(q_.problem.devices());
  if (q_.problem.samples() < 8 * q_.problem.devices()) return 0;  // a replica may have no sample
  std::vector<std::vector<double>> path;
  double longest = 0;
  const auto first = [](const std::vector<double>& seconds) {
    double least = sched::kForever;
    for (const double s : seconds) {
      if (s >= 0) least = std::min(least, s);
    }
    return least;
  };
  for (int i = 0; i < q_.problem.layers(); ++i) {
    const auto group = static_cast<size_t>(q_.groups.group_of[static_cast<size_t>(i)]);
    const bool known = group < decided;
    const auto action = known ? static_cast<size_t>(strategy_.actions[group]) : 0;
    std::vector<double>& ends = path.emplace_back(devices, -1);  // -1: it has no replica there
    for (size_t d = 0; d < devices; ++d) {
      if (known && shares_[action][d] <= 0) continue;
      double begins = 0;
      for (const int input : q_.problem.inputs(i)) {
        const std::vector<double>& before = path[static_cast<size_t>(input)];
        const auto own = static_cast<size_t>(q_.groups.group_of[static_cast<size_t>(input)]);
        if (!known || own >= decided) {
          begins = std::max(begins, first(before));
          continue;
        }
        const auto other = static_cast<size_t>(strategy_.actions[own]);
        const bool gathers = !IsReplicated(q_.problem, static_cast<int>(action));
        const bool scatters = !IsReplicated(q_.problem, static_cast<int>(other));
        if (!gathers && !scatters) {
          begins = std::max(begins, shares_[other] == shares_[action] ? before[d] : first(before));
          continue;
        }
        for (size_t e = 0; e < devices; ++e) {
          if (before[e] < 0) continue;
          begins = std::max(begins, before[e] + Crosses(input, e, d, gathers ? Least(own, e) : Least(group, d)));
        }
      }
      ends[d] = begins + (known ? passes_[static_cast<size_t>(i)][action][d] : fastest_[static_cast<size_t>(i)]);
      longest = std::max(longest, ends[d]);
    }
  }
  return longest;
}

void BruteForce::Branch(size_t group, const std::vector<double>& load) {
  for (size_t d = 0; d < load.size(); ++d) {
    if (load[d] >= best_ || (cards_ && Receives(group, d) >= best_)) return;
  }
  if (LongestPath(group) >= best_) return;
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
