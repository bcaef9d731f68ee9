#include "scheduler-service/planner/schedule_dp.h"
#include "scheduler-service/cost/evaluate.h"
#include "scheduler-service/cost/problem.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace medley::sched {
namespace {

constexpr int kAllTrainers = -1, kAllStages = -2;
constexpr int kNever = std::numeric_limits<int>::max() / 4;
constexpr int kBeamWidth = 32;
constexpr double kServersDown =
    1 - 1e-9;  // keeps a lower bound valid: server units are whole numbers except for rounding

size_t Place(int i) { return static_cast<size_t>(i); }

}  // namespace

ScheduleDp::ScheduleDp(const Problem& problem, const Budget& budget, const StageSubset& subset, int most_stages)
    : problem_(problem),
      budget_(budget),
      graph_(problem, subset, most_stages),
      most_stages_(most_stages),
      rests_(problem.layers(), problem.types()) {}

void ScheduleDp::Prepare(double x) { Prepare(x, graph_.All(), std::vector<double>(Place(problem_.types()) + 2, 0)); }

void ScheduleDp::Prepare(double x, const std::vector<int>& active, std::vector<double> multipliers) {
  x_ = x;
  multipliers_ = std::move(multipliers);
  arcs_.clear();
  besides_.clear();
  arcs_from_.assign(Place(problem_.layers()) + 1, 0);
  const double all = multipliers_[Place(problem_.types())], stage = multipliers_.back();
  const double server = problem_.server_type() < 0 ? 0 : problem_.server_price();
  server_hourly_ = server * x / problem_.batch() * kServersDown;
  const double server_weight =
      server_hourly_ + (problem_.server_type() < 0
                            ? 0
                            : multipliers_[Place(problem_.server_type())] * x / problem_.batch() * kServersDown);
  for (const int i : active) {
    const PossibleStage& s = graph_.stage(i);
    edges_.clear();
    graph_.AddEdges(i, x, edges_, besides_);
    for (const StageEdge& edge : edges_) {
      const double hourly = problem_.price(s.type) * edge.units;
      arcs_.push_back(
          {edge, hourly,
           hourly + (multipliers_[Place(s.type)] + all) * edge.units + server_weight * s.load.seconds + stage,
           graph_.ThroughputOf(i, edge.units) == x});
    }
    arcs_from_[Place(s.first) + 1] = arcs_.size();
  }
  for (size_t l = 1; l < arcs_from_.size(); ++l) arcs_from_[l] = std::max(arcs_from_[l], arcs_from_[l - 1]);
  constant_ = 0;
  for (int t = 0; t < problem_.types(); ++t) constant_ -= multipliers_[Place(t)] * problem_.limit(t);
  constant_ -= all * problem_.request().constraints.max_units + stage * most_stages_;
  rests_.Compute(arcs_, besides_);
}

int ScheduleDp::UseOf(const Arc& arc, int component) const {
  if (component == kAllStages) return 1;
  return component == kAllTrainers || component == arc.type ? arc.units : 0;
}

int ScheduleDp::TrackedLimit(int component) const {
  if (component == kAllStages) return most_stages_;
  return component == kAllTrainers ? problem_.request().constraints.max_units : problem_.limit(component);
}

void ScheduleDp::ComputeRest() {
  rest_.assign(tracked_.size(), {});
  for (size_t c = 0; c < tracked_.size(); ++c) {
    Rest& rest = rest_[c];
    rest.least.assign(Place(problem_.layers()) + 1, kNever);
    rest.most.assign(Place(problem_.layers()) + 1, 0);
    rest.least.back() = 0;
    for (size_t i = arcs_.size(); i-- > 0;) {
      const Arc& arc = arcs_[i];
      const size_t from = Place(arc.first), to = Place(arc.last + 1);
      if (rest.least[to] == kNever) continue;
      const int use = UseOf(arc, tracked_[c]);
      rest.least[from] = std::min(rest.least[from], use + rest.least[to]);
      rest.most[from] = std::min(kNever, std::max(rest.most[from], use + rest.most[to]));
    }
    // Servers are counted separately. If they use this type, every unit may matter until the last layer.
    const bool counts_servers = graph_.has_servers() && tracked_[c] == problem_.server_type();
    if (counts_servers) std::fill(rest.most.begin(), rest.most.end(), kNever);
  }
}

bool ScheduleDp::WithinQuotas(int label, int layer) const {
  const int* used = UsedOf(label);
  for (size_t c = 0; c < tracked_.size(); ++c) {
    int need = rest_[c].least[Place(layer)];
    if (need == kNever) return false;
    need += used[c];
    if (tracked_[c] >= 0 && tracked_[c] == problem_.server_type()) {
      need += problem_.ServerUnits(labels_[Place(label)].load, x_);
    }
    if (need > TrackedLimit(tracked_[c])) return false;
  }
  return true;
}

int ScheduleDp::Floor(size_t component, int layer) const {
  const int most = rest_[component].most[Place(layer)];
  return most == kNever ? 0 : std::max(0, TrackedLimit(tracked_[component]) - most);
}

// True if the stage of `arc`, after those of `from`, or the one before it runs at exactly x.
bool ScheduleDp::IsExact(const Label& from, const Arc& arc) const {
  if (!problem_.has_hops() || arc.last - arc.first + 1 == problem_.layers()) return arc.exact;
  if (from.arc < 0) return false;  // what follows decides
  const Arc& before = arcs_[Place(from.arc)];
  return graph_.RunsAtAfter(before, arc.type, x_) || graph_.RunsAtBefore(arc, before.type, x_);
}

// True if every stage that may follow `other` may follow `one`, and needs no more units there.
bool ScheduleDp::MayBeFollowedLike(const Label& one, const Label& other, int layer) const {
  if (one.arc == other.arc || !problem_.has_hops() || layer == 0 || layer == problem_.layers()) return true;
  const Arc &a = arcs_[Place(one.arc)], &b = arcs_[Place(other.arc)];
  if (exactly_ && !one.exact) return false;  // what follows may make only `other` exact
  const auto after = [&](const Arc& arc) { return arc.beside < 0 ? kAllTypes : besides_[Place(arc.beside)].after; };
  if ((after(b) & ~after(a)) != 0) return false;
  return a.type == b.type || !rests_.IsNarrow(layer) || graph_.IsNoWorseNeighbour(a.type, b.type);
}

// True if `a`, together with the servers that only `a` needs, costs at most as much as `b` and uses at most as many
// units.
bool ScheduleDp::Dominates(int a, int b, int layer) const {
  const Label &one = labels_[Place(a)], &other = labels_[Place(b)];
  if (one.hourly > other.hourly || (exactly_ && !one.exact && other.exact)) return false;
  if (exactly_ && most_stages_ > 0 && one.stages != other.stages) return false;
  if (!MayBeFollowedLike(one, other, layer)) return false;
  ServerLoad more;
  more.seconds = std::max(0.0, one.load.seconds - other.load.seconds) * (1 + 4e-12);
  more.bytes = std::max(0.0, one.load.bytes - other.load.bytes) * (1 + 4e-12);
  more.any = more.seconds > 0 || more.bytes > 0 || (one.load.any && !other.load.any);
  const int servers = problem_.ServerUnits(more, x_);
  if (servers > 0 && one.hourly + problem_.server_price() * servers > other.hourly) return false;
  const int *used = UsedOf(a), *by_other = UsedOf(b);
  for (size_t c = 0; c < tracked_.size(); ++c) {
    const int extra = tracked_[c] >= 0 && tracked_[c] == problem_.server_type() ? servers : 0;
    if (used[c] + extra > std::max(by_other[c], Floor(c, layer))) return false;
  }
  return true;
}

void ScheduleDp::DropDominated(int layer) {
  std::vector<int>& labels = frontier_[Place(layer)];
  std::vector<std::pair<double, int>> order;
  order.reserve(labels.size());
  for (const int label : labels) order.emplace_back(labels_[Place(label)].hourly, label);
  std::sort(order.begin(), order.end());
  for (size_t i = 0; i < order.size(); ++i) labels[i] = order[i].second;
  size_t kept = 0;
  for (const int label : labels) {
    bool dropped = false;
    for (size_t i = 0; i < kept && !dropped; ++i) dropped = Dominates(labels[i], label, layer);
    if (!dropped) labels[kept++] = label;
  }
  labels.resize(kept);
}

void ScheduleDp::KeepBest(int layer, int width) {
  std::vector<int>& labels = frontier_[Place(layer)];
  if (labels.size() <= Place(width)) return;
  std::nth_element(labels.begin(), labels.begin() + width, labels.end(), [&](int a, int b) {
    const double one = labels_[Place(a)].weight, other = labels_[Place(b)].weight;
    return one != other ? one < other : a < b;
  });
  labels.resize(Place(width));
}

void ScheduleDp::Extend(int label, const Arc& arc, double cutoff) {
  const Label& from = labels_[Place(label)];
  if (from.arc >= 0 && !Fit(arcs_[Place(from.arc)], arc, besides_)) return;
  const size_t place = static_cast<size_t>(&arc - arcs_.data());
  Label next;
  next.weight = from.weight + arc.weight;
  const double rest = rests_.After(place, arc).least;
  const double whole = next.weight + rest;
  if (!(whole + constant_ - 1e-12 * (whole - constant_) < cutoff)) return;
  next.hourly = from.hourly + arc.hourly;
  next.load = from.load;
  next.load.Add(graph_.stage(arc.stage).load);
  next.exact = from.exact || (exactly_ && IsExact(from, arc));
  next.stages = from.stages + 1;
  next.arc = static_cast<int>(place);
  next.parent = label;
  const int index = static_cast<int>(labels_.size());
  labels_.push_back(next);
  used_.resize(used_.size() + tracked_.size());
  for (size_t c = 0; c < tracked_.size(); ++c) UsedOf(index)[c] = UsedOf(label)[c] + UseOf(arc, tracked_[c]);
  if (!WithinQuotas(index, arc.last + 1)) {
    labels_.pop_back();
    used_.resize(used_.size() - tracked_.size());
    return;
  }
  frontier_[Place(arc.last + 1)].push_back(index);
}

ScheduleDp::Answer ScheduleDp::Tracked(double cutoff, bool exactly, int width) {
  exactly_ = exactly;
  ComputeRest();
  labels_.assign(1, {});
  used_.assign(tracked_.size(), 0);
  frontier_.assign(Place(problem_.layers()) + 1, {});
  frontier_[0].push_back(0);
  size_t extended = 0;
  for (int layer = 0; layer < problem_.layers(); ++layer) {
    if (frontier_[Place(layer)].size() > 20000 && budget_.Spent()) return {Outcome::kStopped, 0, {}};
    if (width > 0) KeepBest(layer, 8 * width);
    DropDominated(layer);
    if (width > 0) KeepBest(layer, width);
    for (size_t n = 0; n < frontier_[Place(layer)].size(); ++n) {
      if (++extended % 256 == 0 && budget_.Spent()) return {Outcome::kStopped, 0, {}};
      const int label = frontier_[Place(layer)][n];
      for (size_t i = arcs_from_[Place(layer)]; i < arcs_from_[Place(layer) + 1]; ++i) Extend(label, arcs_[i], cutoff);
    }
  }
  double least = cutoff;
  const int best = Best(least, exactly);
  if (best < 0) return {};
  return {Outcome::kFound, least, PathTo(best)};
}

int ScheduleDp::Best(double& least, bool exactly) const {
  int best = -1;
  for (const int i : frontier_.back()) {
    const Label& label = labels_[Place(i)];
    if (exactly && (!label.exact || (most_stages_ > 0 && label.stages != most_stages_))) continue;
    const double hourly = label.hourly + problem_.server_price() * problem_.ServerUnits(label.load, x_);
    if (!(hourly < least)) continue;
    least = hourly;
    best = i;
  }
  return best;
}

std::vector<StageChoice> ScheduleDp::PathTo(int label) const {
  std::vector<StageChoice> stages;
  for (; labels_[Place(label)].arc >= 0; label = labels_[Place(label)].parent) {
    const Arc& arc = arcs_[Place(labels_[Place(label)].arc)];
    stages.push_back({arc.first, arc.last, arc.type, arc.units});
  }
  std::reverse(stages.begin(), stages.end());
  return stages;
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
    if (used[Place(t)] > problem_.limit(t)) tracked_.push_back(t);
  }
  const int most = problem_.request().constraints.max_units;
  if (most > 0 && trainers > most) tracked_.push_back(kAllTrainers);
  if (most_stages_ > 0 && std::ssize(stages) > most_stages_) tracked_.push_back(kAllStages);
  return tracked_.size() > before;
}

ScheduleDp::Answer ScheduleDp::Repeat(double cutoff, bool exactly, int width) {
  const double most = problem_.request().constraints.max_cost_per_hour;
  // Slightly above maxCostPerHour: a plan that costs exactly that is allowed, but plans at the cutoff are not.
  if (most > 0) cutoff = std::min(cutoff, std::nextafter(most * (1 + kTolerance), kInfinity));
  Answer incumbent;
  for (;;) {
    if (!(rests_.Whole().least < kInfinity)) return {};
    if (width == 0 && !tracked_.empty() && incumbent.outcome == Outcome::kNone) {
      // Tight limits cause many labels. A plan from beam search lowers the cutoff, which reduces their number.
      incumbent = Tracked(cutoff, exactly, kBeamWidth);
      if (incumbent.outcome == Outcome::kStopped) return incumbent;
      if (incumbent.outcome == Outcome::kFound) {
        if (TrackViolated(incumbent.stages)) {
          incumbent = {};
          continue;
        }
        cutoff = incumbent.hourly;
      }
    }
    Answer answer = Tracked(cutoff, exactly, width);
    if (answer.outcome == Outcome::kNone) return incumbent;
    if (answer.outcome != Outcome::kFound || !TrackViolated(answer.stages)) return answer;
  }
}

ScheduleDp::Answer ScheduleDp::Solve(double cutoff, bool exactly) { return Repeat(cutoff, exactly, 0); }

ScheduleDp::Answer ScheduleDp::SolveBeam(double cutoff, int width) { return Repeat(cutoff, false, width); }

}  // namespace medley::sched
