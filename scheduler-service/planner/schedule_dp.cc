#include "scheduler-service/planner/schedule_dp.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace medley::sched {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kAllTrainers = -1;
constexpr int kNever = std::numeric_limits<int>::max() / 4;

}  // namespace

ScheduleDp::ScheduleDp(const Problem& problem, const Budget& budget) : problem_(problem), budget_(budget) {
  edges_from_.resize(static_cast<size_t>(problem.layers()));
  for (int t = 0; t < problem.types(); ++t) {
    for (int first = 0; first < problem.layers(); ++first) {
      for (int last = first; last < problem.layers() && problem.Allowed(first, last, t); ++last) {
        edges_from_[static_cast<size_t>(first)].push_back(static_cast<int>(edges_.size()));
        edges_.push_back({first, last, t, problem.Terms(first, last, t), problem.Servers(first, last, t)});
      }
    }
  }
}

void ScheduleDp::Prepare(double x) {
  x_ = x;
  for (Edge& e : edges_) {
    e.units = problem_.MinUnits(e.terms, x, problem_.limit(e.type));
    e.hourly = e.units == 0 ? kInfinity : problem_.price(e.type) * e.units;
    const double servers = e.load.any ? problem_.server_price() * x * e.load.seconds / problem_.batch() : 0;
    e.bound = e.hourly + servers * (1 - 1e-9);
    e.exact = e.units > 0 && problem_.Throughput(e.terms, e.units) == x;
  }
}

// to_go[layer][type]: least sum of weights of stages from `layer` to the end, the first one not on `type`.
void ScheduleDp::ComputeToGo(const std::vector<double>& weight, std::vector<double>& to_go) const {
  const int layers = problem_.layers(), types = problem_.types();
  to_go.assign(StateAt(layers, types), 0);
  std::vector<double> by_type(static_cast<size_t>(types));
  for (int layer = layers - 1; layer >= 0; --layer) {
    std::fill(by_type.begin(), by_type.end(), kInfinity);
    for (const int i : edges_from_[static_cast<size_t>(layer)]) {
      const Edge& e = edges_[static_cast<size_t>(i)];
      double& least = by_type[static_cast<size_t>(e.type)];
      least = std::min(least, weight[static_cast<size_t>(i)] + to_go[StateAt(e.last + 1, e.type)]);
    }
    for (int t = 0; t < types; ++t) {
      double least = kInfinity;
      for (int other = 0; other < types; ++other) {
        if (other != t) least = std::min(least, by_type[static_cast<size_t>(other)]);
      }
      to_go[StateAt(layer, t)] = least;
    }
    if (layer == 0) to_go[0] = *std::min_element(by_type.begin(), by_type.end());  // no stage before: any type
  }
}

double ScheduleDp::RateBound(double upper) {
  std::vector<double> weight(edges_.size());
  for (size_t i = 0; i < edges_.size(); ++i) {
    const Edge& e = edges_[i];
    if (e.units == 0) {
      weight[i] = kInfinity;
      continue;
    }
    const double units = std::max(problem_.UnitRateBound(e.terms, x_), e.units / upper);
    const double servers = e.load.any ? problem_.server_price() * e.load.seconds / problem_.batch() : 0;
    weight[i] = (problem_.price(e.type) * units + servers) * (1 - 1e-12);
  }
  std::vector<double> to_go;
  ComputeToGo(weight, to_go);
  return to_go[0];
}

int ScheduleDp::UseOf(const Edge& edge, int component) const {
  return component == kAllTrainers || component == edge.type ? edge.units : 0;
}

int ScheduleDp::TrackedLimit(int component) const {
  return component == kAllTrainers ? problem_.request().constraints.max_units : problem_.limit(component);
}

void ScheduleDp::ComputeUseToGo() {
  use_to_go_.assign(tracked_.size(), std::vector<int>(static_cast<size_t>(problem_.layers()) + 1, kNever));
  for (size_t c = 0; c < tracked_.size(); ++c) {
    std::vector<int>& least = use_to_go_[c];
    least.back() = 0;
    for (int layer = problem_.layers() - 1; layer >= 0; --layer) {
      for (const int i : edges_from_[static_cast<size_t>(layer)]) {
        const Edge& e = edges_[static_cast<size_t>(i)];
        if (e.units == 0 || least[static_cast<size_t>(e.last + 1)] == kNever) continue;
        least[static_cast<size_t>(layer)] =
            std::min(least[static_cast<size_t>(layer)], UseOf(e, tracked_[c]) + least[static_cast<size_t>(e.last + 1)]);
      }
    }
  }
}

bool ScheduleDp::WithinLimits(const Label& label, int layer) const {
  for (size_t c = 0; c < tracked_.size(); ++c) {
    int need = use_to_go_[c][static_cast<size_t>(layer)];
    if (need == kNever) return false;
    need += label.used[c];
    if (tracked_[c] != kAllTrainers && tracked_[c] == problem_.server_type()) {
      need += problem_.ServerUnits(label.load, x_);
    }
    if (need > TrackedLimit(tracked_[c])) return false;
  }
  return true;
}

bool ScheduleDp::Dominates(const Label& a, const Label& b) {
  if (a.hourly > b.hourly || a.load.seconds > b.load.seconds || a.load.bytes > b.load.bytes) return false;
  if ((a.load.any && !b.load.any) || (!a.exact && b.exact)) return false;
  for (size_t c = 0; c < a.used.size(); ++c) {
    if (a.used[c] > b.used[c]) return false;
  }
  return true;
}

void ScheduleDp::Insert(State& state, Label label) {
  for (const Label& other : state) {
    if (Dominates(other, label)) return;
  }
  // Indices of labels that others refer to must not move: states are only inserted into before they are extended.
  std::erase_if(state, [&](const Label& other) { return Dominates(label, other); });
  state.push_back(std::move(label));
}

bool ScheduleDp::Extend(const Label& label, int label_index, int label_type, int edge_index, double cutoff) {
  const Edge& e = edges_[static_cast<size_t>(edge_index)];
  if (e.units == 0 || e.type == label_type) return false;
  Label next;
  next.hourly = label.hourly + e.hourly;
  next.load = label.load;
  next.load.Add(e.load);
  const double servers =
      next.load.any ? problem_.server_price() * x_ * next.load.seconds / problem_.batch() * (1 - 1e-9) : 0;
  const double rest = to_go_[StateAt(e.last + 1, e.type)];
  if (!((next.hourly + servers + rest) * (1 - 1e-12) < cutoff)) return false;
  next.used = label.used;
  for (size_t c = 0; c < tracked_.size(); ++c) next.used[c] += UseOf(e, tracked_[c]);
  next.exact = label.exact || e.exact;
  next.edge = edge_index;
  next.parent = label_index;
  next.parent_type = label_type;
  if (!WithinLimits(next, e.last + 1)) return false;
  Insert(states_[StateAt(e.last + 1, e.type)], std::move(next));
  return true;
}

ScheduleDp::Answer ScheduleDp::SolveTracked(double cutoff, bool exactly) {
  ComputeUseToGo();
  states_.assign(StateAt(problem_.layers() + 1, 0), {});
  Label root;
  root.used.assign(tracked_.size(), 0);
  for (const int i : edges_from_[0]) Extend(root, -1, -1, i, cutoff);
  int extended = 0;
  for (int layer = 1; layer < problem_.layers(); ++layer) {
    for (int t = 0; t < problem_.types(); ++t) {
      const State& state = states_[StateAt(layer, t)];
      for (size_t n = 0; n < state.size(); ++n) {
        if (++extended % 256 == 0 && budget_.Spent()) return {Outcome::kStopped, 0, {}};
        for (const int i : edges_from_[static_cast<size_t>(layer)]) {
          Extend(state[n], static_cast<int>(n), t, i, cutoff);
        }
      }
    }
  }
  return Best(cutoff, exactly);
}

std::vector<StageChoice> ScheduleDp::PathTo(int type, int index) const {
  std::vector<StageChoice> stages;
  int layer = problem_.layers();
  while (index >= 0) {
    const Label& label = states_[StateAt(layer, type)][static_cast<size_t>(index)];
    const Edge& e = edges_[static_cast<size_t>(label.edge)];
    stages.push_back({e.first, e.last, e.type, e.units});
    layer = e.first;
    type = label.parent_type;
    index = label.parent;
  }
  std::reverse(stages.begin(), stages.end());
  return stages;
}

ScheduleDp::Answer ScheduleDp::Best(double cutoff, bool exactly) const {
  double least = cutoff;
  int best_type = -1, best_index = -1;
  for (int t = 0; t < problem_.types(); ++t) {
    const State& state = states_[StateAt(problem_.layers(), t)];
    for (size_t n = 0; n < state.size(); ++n) {
      if (exactly && !state[n].exact) continue;
      const double hourly =
          state[n].hourly + problem_.server_price() * problem_.ServerUnits(state[n].load, x_);
      if (!(hourly < least)) continue;
      least = hourly;
      best_type = t;
      best_index = static_cast<int>(n);
    }
  }
  if (best_type < 0) return {};
  return {Outcome::kFound, least, PathTo(best_type, best_index)};
}

bool ScheduleDp::TrackViolated(const std::vector<StageChoice>& stages) {
  ServerLoad load;
  int trainers = 0;
  for (const StageChoice& s : stages) {
    load.Add(problem_.Servers(s.first, s.last, s.type));
    trainers += s.units;
  }
  const std::vector<int> used = UnitsByType(problem_, stages, problem_.ServerUnits(load, x_));
  const size_t before = tracked_.size();
  for (int t = 0; t < problem_.types(); ++t) {
    if (used[static_cast<size_t>(t)] > problem_.limit(t)) tracked_.push_back(t);
  }
  const int most = problem_.request().constraints.max_units;
  if (most > 0 && trainers > most) tracked_.push_back(kAllTrainers);
  return tracked_.size() > before;
}

ScheduleDp::Answer ScheduleDp::Solve(double cutoff, bool exactly) {
  std::vector<double> weight(edges_.size());
  std::transform(edges_.begin(), edges_.end(), weight.begin(), [](const Edge& e) { return e.bound; });
  ComputeToGo(weight, to_go_);
  const double most = problem_.request().constraints.max_cost_per_hour;
  // The cap itself is allowed, the cutoff is not: one step above the cap.
  if (most > 0) cutoff = std::min(cutoff, std::nextafter(most * (1 + kTolerance), kInfinity));
  for (;;) {
    if (!(to_go_[0] * (1 - 1e-12) < cutoff)) return {};
    Answer answer = SolveTracked(cutoff, exactly);
    if (answer.outcome != Outcome::kFound || !TrackViolated(answer.stages)) return answer;
  }
}

int64_t ScheduleDp::CountBreakpoints(double low, double high) const {
  int64_t count = 0;
  for (const Edge& e : edges_) {
    const int first = problem_.MinUnits(e.terms, low, problem_.limit(e.type));
    if (first == 0) continue;
    // On a plateau (nothing left that divides by units) many unit counts have one throughput.
    const double fastest = problem_.Throughput(e.terms, problem_.limit(e.type));
    const int end = problem_.MinUnits(e.terms, std::min(high, fastest), problem_.limit(e.type));
    count += end - first + (problem_.Throughput(e.terms, end) <= high ? 1 : 0);
  }
  return count;
}

std::vector<double> ScheduleDp::Breakpoints(double low, double high) const {
  std::vector<double> found;
  for (const Edge& e : edges_) {
    int k = problem_.MinUnits(e.terms, low, problem_.limit(e.type));
    if (k == 0) continue;
    for (; k <= problem_.limit(e.type); ++k) {
      const double x = problem_.Throughput(e.terms, k);
      if (x > high) break;
      if (!found.empty() && found.back() == x) {  // a plateau: more units do not help
        const double more = std::nextafter(x, kInfinity);
        k = problem_.MinUnits(e.terms, more, problem_.limit(e.type));
        if (k == 0) break;
        --k;
        continue;
      }
      found.push_back(x);
    }
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

double ScheduleDp::SlowestThroughput() const {
  double slowest = kInfinity;
  for (const Edge& e : edges_) slowest = std::min(slowest, problem_.Throughput(e.terms, problem_.min_units()));
  return slowest;
}

double ScheduleDp::FastestThroughput() const {
  // Some stage holds each layer and computes at least that layer: communication may be less in a longer stage.
  double fastest = kInfinity;
  for (int layer = 0; layer < problem_.layers(); ++layer) {
    double here = 0;
    for (int t = 0; t < problem_.types(); ++t) {
      if (!problem_.Allowed(layer, layer, t) || problem_.limit(t) < problem_.min_units()) continue;
      StageTerms terms = problem_.Terms(layer, layer, t);
      terms.comm_serial = terms.comm_parallel = 0;
      here = std::max(here, problem_.Throughput(terms, problem_.limit(t)));
    }
    fastest = std::min(fastest, here);
  }
  return fastest * (1 + 1e-9);  // sums of longer stages may round
}

}  // namespace medley::sched
