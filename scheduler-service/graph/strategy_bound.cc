#include "scheduler-service/graph/strategy_bound.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "scheduler-service/simulate/from_profile.h"
#include "scheduler-service/simulate/profile_quotas.h"

namespace medley::sched {
namespace {

constexpr int kMostReplicas = 2000;
constexpr int64_t kMostLoads = 4'000'000;
constexpr double kUnknownForward = 1.0 / 3;  // of both passes, where the profile does not say it (from_profile.cc)

double First(const std::vector<double>& paths) {
  double first = kForever;
  for (const double seconds : paths) first = seconds >= 0 ? std::min(first, seconds) : first;
  return first == kForever ? -1 : first;
}

bool IsAllreduce(const DeviceProblem& problem, int action) {
  return action == ActionOf(problem, Replicas::kEvenAllreduce) ||
         action == ActionOf(problem, Replicas::kProportionalAllreduce);
}

}  // namespace

StrategyBound::StrategyBound(const DeviceProblem& problem, const OperationGroups& groups)
    : problem_(problem), groups_(groups) {
  const int devices = problem.devices();
  const bool sparse = std::ranges::any_of(problem.profile().model.layers, &model::Layer::sparse);
  const int64_t loads = int64_t{groups.count()} * ActionCount(problem) * devices;
  known_ = !sparse && !problem.asynchronous() && loads <= kMostLoads;
  if (!known_) return;
  // With fewer samples a replica may have none.
  paths_ = problem.layers() * devices <= kMostReplicas && problem.samples() >= 8 * devices * problem.micro_batches();
  std::set<std::string> machines;
  for (int d = 0; d < devices; ++d) {
    const std::string& machine = problem.device(d).machine;
    cards_ = cards_ && (machine.empty() || machines.insert(machine).second);
  }
  const std::vector<int> counts = ReplicaCounts(problem);
  const double all = std::accumulate(counts.begin(), counts.end(), 0);
  for (int action = 0; action < ActionCount(problem); ++action) {
    std::vector<double>& shares = shares_.emplace_back(devices, 0);
    const bool even =
        action == ActionOf(problem, Replicas::kEvenServer) || action == ActionOf(problem, Replicas::kEvenAllreduce);
    for (int d = 0; d < devices; ++d) {
      const double part = even ? 1.0 / devices : counts[static_cast<size_t>(d)] / all;
      shares[static_cast<size_t>(d)] = IsReplicated(problem, action) ? part : action == d ? 1 : 0;
    }
  }
  AddGroups();
  AddOutputs();
  if (paths_) AddPasses();
  AddRing();
}

void StrategyBound::AddGroups() {
  const double sample = 1.0 / problem_.samples();  // parts are whole samples
  for (const std::vector<int>& members : groups_.members) {
    std::vector<std::vector<double>>& loads = loads_.emplace_back();
    double& weights = weights_.emplace_back(0);
    for (const int i : members) weights += problem_.WeightBytes(i, i + 1);
    for (const std::vector<double>& shares : shares_) {
      std::vector<double>& load = loads.emplace_back(shares.size(), 0);
      for (size_t d = 0; d < shares.size(); ++d) {
        if (shares[d] <= 0) continue;
        for (const int i : members) {
          load[d] += problem_.LeastWorkOf(i, i + 1, static_cast<int>(d)).At(std::max(0.0, shares[d] - sample));
        }
      }
    }
  }
}

void StrategyBound::AddOutputs() {
  std::vector<std::set<size_t>> users(static_cast<size_t>(problem_.layers()));
  for (int i = 0; i < problem_.layers(); ++i) {
    for (const int input : problem_.inputs(i)) {
      if (GroupOf(input) != GroupOf(i)) users[static_cast<size_t>(input)].insert(GroupOf(i));
    }
  }
  for (int i = 0; i < problem_.layers(); ++i) {
    const std::set<size_t>& own = users[static_cast<size_t>(i)];
    const double bytes = problem_.profile().model.layers[static_cast<size_t>(i)].output_bytes * problem_.samples();
    if (!own.empty()) outputs_.push_back({GroupOf(i), bytes, {own.begin(), own.end()}});
  }
}

void StrategyBound::AddPasses() {
  const double sample = 1.0 / problem_.samples();
  const auto parts = QuotaParts(problem_.profile());  // a quota holds up a step, not a single path
  for (int i = 0; i < problem_.layers(); ++i) {
    std::vector<std::vector<double>>& passes = passes_.emplace_back();
    double& fastest = fastest_.emplace_back(kForever);
    const auto& profiles = problem_.profile().model.layers[static_cast<size_t>(i)].profiles;
    for (const std::vector<double>& shares : shares_) {
      std::vector<double>& seconds = passes.emplace_back(shares.size(), 0);
      for (size_t d = 0; d < shares.size(); ++d) {
        if (shares[d] <= 0) continue;
        const std::string& pool = problem_.device(static_cast<int>(d)).pool;
        const auto times = std::ranges::find(profiles, pool, &model::LayerProfile::resource_type);
        const double work = problem_.LeastWorkOf(i, i + 1, static_cast<int>(d)).At(std::max(0.0, shares[d] - sample));
        seconds[d] = work * (1 - times->update_part) * (parts.contains(pool) ? parts.at(pool) : 1) /
                     std::max(1, problem_.micro_batches());
        fastest = std::min(fastest, seconds[d]);
        forward_ = std::min(forward_, times->forward_part > 0 ? times->forward_part : kUnknownForward);
      }
    }
  }
}

// Each device has two links of a ring, each in one direction: at best its second fastest counts.
void StrategyBound::AddRing() {
  for (int d = 0; d < problem_.devices(); ++d) {
    std::vector<double> links;
    for (int e = 0; e < problem_.devices(); ++e) {
      if (e == d) continue;
      const double there = problem_.Link(d, e).bytes_per_second, back = problem_.Link(e, d).bytes_per_second;
      links.push_back(there > 0 && back > 0 ? 1 / std::max(there, back) : 0);
    }
    std::ranges::sort(links);
    if (links.size() >= 2) ring_ = std::max(ring_, links[1]);
  }
  ring_ *= 2.0 * (problem_.devices() - 1) / problem_.devices();
}

double StrategyBound::Share(const Choice& c, size_t group, size_t device) const {
  return shares_[static_cast<size_t>(c.actions[group])][device];
}

double StrategyBound::Least(const Choice& c, size_t group, size_t device) const {
  const double share = Share(c, group, device);
  return share >= 1 ? 1 : std::max(0.0, share - 1.0 / problem_.samples());
}

double StrategyBound::Most(const Choice& c, size_t group, size_t device) const {
  const double share = Share(c, group, device);
  return share <= 0 ? 0 : std::min(1.0, share + 1.0 / problem_.samples());
}

double StrategyBound::Computes(const Choice& c, size_t device) const {
  double seconds = 0;
  for (size_t g = 0; g < c.decided; ++g) seconds += loads_[g][static_cast<size_t>(c.actions[g])][device];
  return seconds;
}

double StrategyBound::Receives(const Choice& c, size_t device) const {
  double bytes = 0;
  for (size_t g = 0; g < c.decided; ++g) {
    // Whoever adds, each replica gets the sum or the new parameters.
    if (IsReplicated(problem_, c.actions[g]) && Least(c, g, device) > 0) bytes += weights_[g];
  }
  for (const Output& output : outputs_) {
    if (output.group >= c.decided) continue;
    double needs = 0, gradients = 0;
    for (const size_t user : output.users) {
      if (user >= c.decided) continue;
      needs = std::max(needs, Least(c, user, device) - Most(c, output.group, device));
      gradients = std::max(gradients, Least(c, output.group, device) - Most(c, user, device));
    }
    bytes += output.bytes * (needs + gradients);
  }
  return bytes * problem_.CardSecondsPerByte(static_cast<int>(device));
}

double StrategyBound::Crosses(int operation, size_t from, size_t to, double part) const {
  if (from == to) return 0;
  const model::Layer& layer = problem_.profile().model.layers[static_cast<size_t>(operation)];
  const double bytes =
      layer.output_bytes * problem_.samples() * std::max(0.0, part) / std::max(1, problem_.micro_batches());
  double seconds = 0;
  for (const auto& [a, b] : {std::pair(from, to), std::pair(to, from)}) {
    const model::LinkSpeed& link = problem_.Link(static_cast<int>(a), static_cast<int>(b));
    seconds += link.latency_seconds + (link.bytes_per_second > 0 ? bytes / link.bytes_per_second : 0);
  }
  return seconds;
}

// Which replicas wait for which others is certain where one of the operations is on one device, or both have the same
// parts of the batch. Otherwise the one that is ready first counts.
double StrategyBound::Waits(const Choice& c, int i, size_t d, int j, const std::vector<double>& paths) const {
  const size_t own = GroupOf(i), other = GroupOf(j);
  if (own >= c.decided || other >= c.decided) return First(paths);
  const bool own_replicas = IsReplicated(problem_, c.actions[own]);
  const bool other_replicas = IsReplicated(problem_, c.actions[other]);
  if (own_replicas && other_replicas) {
    const auto own_action = static_cast<size_t>(c.actions[own]), other_action = static_cast<size_t>(c.actions[other]);
    return shares_[own_action] == shares_[other_action] ? paths[d] : First(paths);
  }
  double waits = -1;
  for (size_t e = 0; e < paths.size(); ++e) {
    if (paths[e] < 0) continue;
    const double part = own_replicas ? Least(c, own, d) : other_replicas ? Least(c, other, e) : 1;
    waits = std::max(waits, paths[e] + Crosses(std::min(i, j), e, d, part));
  }
  return waits;
}

double StrategyBound::Passes(const Choice& c, int operation, size_t device) const {
  const auto at = static_cast<size_t>(operation);
  const size_t group = GroupOf(operation);
  if (group >= c.decided) return fastest_[at];
  return Share(c, group, device) > 0 ? passes_[at][static_cast<size_t>(c.actions[group])][device] : -1;
}

StrategyBound::Paths StrategyBound::PathsTo(const Choice& c, std::optional<size_t> from) const {
  Paths paths;
  for (int i = 0; i < problem_.layers(); ++i) {
    std::vector<double> ends(static_cast<size_t>(problem_.devices()), -1);
    for (size_t d = 0; d < ends.size(); ++d) {
      const double own = Passes(c, i, d);
      double begins = !from || (GroupOf(i) < c.decided && *from == d) ? 0 : -1;
      for (const int input : problem_.inputs(i)) {
        begins = std::max(begins, Waits(c, i, d, input, paths[static_cast<size_t>(input)]));
      }
      if (own >= 0 && begins >= 0) ends[d] = begins + own;
    }
    paths.push_back(std::move(ends));
  }
  return paths;
}

StrategyBound::Paths StrategyBound::PathsFrom(const Choice& c) const {
  const auto devices = static_cast<size_t>(problem_.devices()), layers = static_cast<size_t>(problem_.layers());
  Paths paths(layers, std::vector<double>(devices, -1)), after(layers, std::vector<double>(devices, 0));
  for (int i = problem_.layers(); i-- > 0;) {
    const auto at = static_cast<size_t>(i);
    for (size_t d = 0; d < devices; ++d) {
      if (const double own = Passes(c, i, d); own >= 0) paths[at][d] = after[at][d] + own;
    }
    for (const int input : problem_.inputs(i)) {
      for (size_t d = 0; d < devices; ++d) {
        double& longest = after[static_cast<size_t>(input)][d];
        longest = std::max(longest, Waits(c, input, d, i, paths[at]));
      }
    }
  }
  return paths;
}

// A device computes the next step after the reductions of this one that it takes part in.
double StrategyBound::AfterGradients(const Choice& c, size_t device, const Paths& from) const {
  const Paths to = PathsTo(c, device);
  const double card = problem_.CardSecondsPerByte(static_cast<int>(device));
  double first = kForever, ring = 0, receives = 0;
  for (int i = 0; i < problem_.layers(); ++i) {
    const auto at = static_cast<size_t>(i);
    const size_t group = GroupOf(i);
    const double bytes = problem_.WeightBytes(i, i + 1);
    if (group >= c.decided || bytes <= 0 || !IsReplicated(problem_, c.actions[group])) continue;
    if (Least(c, group, device) <= 0) continue;
    first = std::min(first, forward_ * (to[at][device] - Passes(c, i, device)) + from[at][device]);
    receives += bytes * card;
    if (IsAllreduce(problem_, c.actions[group])) ring += bytes * ring_;
  }
  return first == kForever ? 0 : first + std::max(ring, receives);
}

bool StrategyBound::Reaches(const std::vector<int>& actions, size_t decided, double seconds) const {
  if (!known_) return false;
  const Choice c{actions, decided};
  const auto devices = static_cast<size_t>(problem_.devices());
  for (size_t d = 0; d < devices; ++d) {
    if (Computes(c, d) >= seconds || (cards_ && Receives(c, d) >= seconds)) return true;
  }
  if (!paths_) return false;
  for (const std::vector<double>& ends : PathsTo(c, std::nullopt)) {
    if (std::ranges::max(ends) >= seconds) return true;
  }
  if (!cards_) return false;
  const Paths from = PathsFrom(c);
  for (size_t d = 0; d < devices; ++d) {
    if (AfterGradients(c, d, from) >= seconds) return true;
  }
  return false;
}

}  // namespace medley::sched
