#include "scheduler-service/planner/relaxation.h"
#include "scheduler-service/cost/problem.h"

#include <algorithm>
#include <cmath>

namespace medley::sched {
namespace {

constexpr double kDown = 1 - 1e-12;  // keeps a lower bound valid despite rounding
constexpr size_t kMaxCandidates = 4;

size_t At(int i) { return static_cast<size_t>(i); }

}  // namespace

Relaxation::Relaxation(const StageGraph& graph, int most_stages)
    : graph_(graph),
      problem_(graph.problem()),
      components_(At(graph.problem().types()) + 2),
      all_units_(components_ - 2),
      all_stages_(components_ - 1),
      most_stages_(most_stages),
      multipliers_(components_, 0),
      rests_(graph.problem().layers(), graph.problem().types()) {}

double Relaxation::QuotaOf(size_t component) const {
  if (component < all_units_) return problem_.limit(static_cast<int>(component));
  const int most = component == all_stages_ ? most_stages_ : problem_.request().constraints.max_units;
  return most > 0 ? most : kInfinity;
}

bool Relaxation::Prepare(double low, double high, std::vector<int>& active) {
  low_ = low;
  high_ = high;
  arcs_.clear();
  besides_.clear();
  slowest_active_ = kInfinity;
  size_t kept = 0;
  for (const int i : active) {
    edges_.clear();
    slowest_active_ = std::min(slowest_active_, graph_.AddEdges(i, low, edges_, besides_));
    if (edges_.empty()) continue;
    active[kept++] = i;
    const PossibleStage& s = graph_.stage(i);
    for (const StageEdge& edge : edges_) {
      const double fastest = graph_.ThroughputOf(i, edge.units);
      arcs_.push_back({edge, problem_.price(s.type) * edge.units / std::min(high, fastest) * kDown, s.load.seconds, 0});
    }
  }
  active.resize(kept);
  PrepareServers(low, high);
  Weigh();
  Backward();
  return rests_.Whole().least < kInfinity && !(slowest_active_ > high);
}

// Uses the larger of two lower bounds of the servers' cost: the cost for the cheapest path if servers were divisible,
// and the cost of the whole servers that every path needs.
void Relaxation::PrepareServers(double low, double high) {
  linear_servers_ = true;
  least_servers_ = 0;
  server_rate_ = 0;
  if (!graph_.has_servers()) return;
  const size_t layers = At(problem_.layers());
  std::vector<double> seconds(layers + 1, kInfinity), bytes(layers + 1, kInfinity);
  std::vector<char> any(layers + 1, 1);
  seconds[layers] = bytes[layers] = any[layers] = 0;
  for (size_t i = arcs_.size(); i-- > 0;) {
    const Arc& arc = arcs_[i];
    const ServerLoad& load = graph_.stage(arc.stage).load;
    const size_t from = At(arc.first), to = At(arc.last + 1);
    seconds[from] = std::min(seconds[from], load.seconds + seconds[to]);
    bytes[from] = std::min(bytes[from], load.bytes + bytes[to]);
    any[from] = any[from] != 0 && (load.any || any[to] != 0) ? 1 : 0;
  }
  const double per_second = problem_.server_price() / problem_.batch();
  if (any[0] != 0 && seconds[0] < kInfinity) {
    least_servers_ = problem_.ServerUnits({seconds[0] * kDown, bytes[0] * kDown, true}, low);
    const double until = seconds[0] > 0 ? std::min(high, least_servers_ * problem_.batch() / seconds[0]) : high;
    server_rate_ = problem_.server_price() * least_servers_ / std::max(until, low) * kDown;
  }
  Weigh();
  Backward();
  double linear = 0;
  for (const int i : Path()) linear += per_second * arcs_[At(i)].server_seconds;
  linear_servers_ = linear >= server_rate_;
  if (!linear_servers_) return;
  server_rate_ = 0;
  least_servers_ = 0;
  for (Arc& arc : arcs_) arc.rate += per_second * arc.server_seconds * kDown;
}

void Relaxation::Weigh() {
  const double all = multipliers_[all_units_], stage = multipliers_[all_stages_];
  const double servers = problem_.server_type() < 0 ? 0 : multipliers_[At(problem_.server_type())];
  const double per_second = linear_servers_ ? servers * low_ / problem_.batch() * kDown : 0;
  for (Arc& arc : arcs_) {
    arc.weight = arc.rate + (multipliers_[At(arc.type)] + all) * arc.units + per_second * arc.server_seconds + stage;
  }
  constant_ = server_rate_ + servers * least_servers_;
  for (size_t c = 0; c < components_; ++c) {
    if (multipliers_[c] > 0 && QuotaOf(c) < kInfinity) constant_ -= multipliers_[c] * QuotaOf(c);
  }
}

void Relaxation::Forward() {
  so_far_.assign(At(problem_.layers()) + 1, kInfinity);
  so_far_[0] = 0;
  for (const Arc& arc : arcs_) {
    double& here = so_far_[At(arc.last + 1)];
    here = std::min(here, so_far_[At(arc.first)] + arc.weight);
  }
}

double Relaxation::PathBound() const {
  const double least = rests_.Whole().least;
  const double sum = least + constant_;
  // Subtract the rounding error of the two parts, which may be much larger than their sum.
  return sum - 1e-12 * (std::abs(least) + std::abs(constant_));
}

std::vector<int> Relaxation::Path() const {
  std::vector<int> path;
  for (int i = rests_.Whole().stage; i >= 0; i = rests_.After(At(i), arcs_[At(i)]).stage) path.push_back(i);
  return path;
}

std::vector<double> Relaxation::UseOf(const std::vector<int>& path) const {
  std::vector<double> use(components_, 0);
  double seconds = 0;
  for (const int i : path) {
    const Arc& arc = arcs_[At(i)];
    use[At(arc.type)] += arc.units;
    use[all_units_] += arc.units;
    use[all_stages_] += 1;
    seconds += arc.server_seconds;
  }
  if (problem_.server_type() >= 0) {
    use[At(problem_.server_type())] += linear_servers_ ? low_ * seconds / problem_.batch() : least_servers_;
  }
  return use;
}

std::vector<StageChoice> Relaxation::Choices(const std::vector<int>& path) const {
  std::vector<StageChoice> stages;
  for (const int i : path) {
    const Arc& arc = arcs_[At(i)];
    stages.push_back({arc.first, arc.last, arc.type, arc.units});
  }
  return stages;
}

bool Relaxation::Step(const std::vector<double>& use, double gain, double scale) {
  // Limits differ by orders of magnitude, so steps are relative to the limit.
  double norm = 0;
  for (size_t c = 0; c < components_; ++c) {
    const double quota = QuotaOf(c);
    if (!(quota < kInfinity) || (use[c] <= quota && multipliers_[c] == 0)) continue;
    const double over = use[c] / std::max(quota, 1.0) - 1;
    norm += over * over;
  }
  if (norm == 0) return false;
  norm = std::max(norm, 1e-4);  // avoids a huge step if use is very close to the limit
  for (size_t c = 0; c < components_; ++c) {
    const double quota = QuotaOf(c);
    if (!(quota < kInfinity)) continue;
    const double share = std::max(quota, 1.0);
    multipliers_[c] = std::max(0.0, multipliers_[c] + scale * gain / norm * (use[c] / share - 1) / share);
  }
  return true;
}

Relaxation::Bound Relaxation::Improve(double cutoff, int rounds) {
  Bound bound{-kInfinity, {}};
  std::vector<double> best = multipliers_;
  double scale = 1;
  int since = 0;
  for (int round = 0; round <= rounds; ++round) {
    Weigh();
    Backward();
    const double rate = PathBound();
    if (rate > bound.rate) {
      since = rate > bound.rate + 1e-4 * std::abs(bound.rate) ? 0 : since + 1;
      bound.rate = rate;
      best = multipliers_;
    } else {
      ++since;
    }
    if (bound.rate >= cutoff || !std::isfinite(rate)) break;
    if (since >= 3) {
      scale /= 2;
      since = 0;
    }
    const std::vector<int> path = Path();
    const std::vector<double> use = UseOf(path);
    bool fits = true;
    for (size_t c = 0; c < components_; ++c) fits = fits && use[c] <= QuotaOf(c);
    if (fits && bound.candidates.size() < kMaxCandidates) bound.candidates.push_back(Choices(path));
    const double target = cutoff < kInfinity ? cutoff : std::abs(rate) * 1.5 + 1e-300;
    if (!Step(use, std::max(target - rate, 1e-6 * std::abs(rate)), scale)) break;
  }
  multipliers_ = std::move(best);
  bound.rate = std::max(bound.rate, 0.0);
  return bound;
}

void Relaxation::Eliminate(double cutoff, std::vector<int>& active) {
  Weigh();
  Backward();
  Forward();
  size_t kept = 0;
  for (size_t i = 0; i < arcs_.size(); ++i) {
    const Arc& arc = arcs_[i];
    const double path = so_far_[At(arc.first)] + arc.weight + rests_.After(i, arc).least;
    if (!(path + constant_ - 1e-12 * (path + std::abs(constant_)) < cutoff)) continue;
    if (kept == 0 || active[kept - 1] != arc.stage) active[kept++] = arc.stage;  // edges of a stage are side by side
  }
  active.resize(kept);
}

}  // namespace medley::sched
