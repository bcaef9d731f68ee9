#include "scheduler-service/pipeline/exact_pipeline.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>

#include "common/base/status.h"
#include "scheduler-service/pipeline/closed_form.h"
#include "scheduler-service/step_time/shares.h"

namespace medley::sched {
namespace {

using Set = unsigned;  // of devices, a bit each

// The boundaries of pieces, from 0 to layers().
std::vector<int> Boundaries(const StepTimeProblem& problem, size_t& joined) {
  std::vector<int> out = {0};
  out.insert(out.end(), problem.cuts().begin(), problem.cuts().end());
  out.push_back(problem.layers());
  const auto work = [&](int first, int end) {
    double most = 0;
    for (int d = 0; d < problem.devices(); ++d) most = std::max(most, problem.WorkOf(first, end, d).At(1));
    return most;
  };
  // Joins the piece with the least work to the smaller of its neighbours.
  while (out.size() > kMostExactPieces + 1) {
    size_t smallest = 0;
    double least = kForever;
    for (size_t i = 0; i + 2 < out.size(); ++i) {
      const double both = work(out[i], out[i + 2]);
      if (both >= least) continue;
      least = both;
      smallest = i + 1;
    }
    out.erase(out.begin() + static_cast<std::ptrdiff_t>(smallest));
    ++joined;
  }
  return out;
}

// Devices that can take each other's place: the same pool, and equal links to all others.
bool Alike(const StepTimeProblem& problem, int a, int b) {
  if (problem.device(a).pool != problem.device(b).pool || problem.MemoryBytes(a) != problem.MemoryBytes(b))
    return false;
  const auto equal = [](const model::LinkSpeed& x, const model::LinkSpeed& y) {
    return x.latency_seconds == y.latency_seconds && x.bytes_per_second == y.bytes_per_second;
  };
  if (!equal(problem.Link(a, b), problem.Link(b, a))) return false;
  for (int d = 0; d < problem.devices(); ++d) {
    if (d == a || d == b) continue;
    if (!equal(problem.Link(a, d), problem.Link(b, d)) || !equal(problem.Link(d, a), problem.Link(d, b))) return false;
  }
  return true;
}

class PipelineSearch {
 public:
  PipelineSearch(const StepTimeProblem& problem, const Budget& limits, double steps_kept)
      : problem_(problem), limits_(limits), steps_kept_(steps_kept), bounds_(Boundaries(problem, out_.pieces_joined)) {
    devices_ = problem.devices();
    all_ = (Set{1} << devices_) - 1;
    pieces_ = static_cast<int>(bounds_.size()) - 1;
    FindOrders();
    FillTables();
  }

  ExactPipeline Run() {
    for (Set set = 1; set <= all_; ++set) {  // one stage
      if (compute_[At(0, pieces_, set)] < kForever) Offer({{0, problem_.layers(), Members(set)}});
    }
    // Where no single stage fits, the slowest possible pipeline is the start.
    if (out_.stages.empty()) out_.seconds = SlowestSeconds();
    if (problem_.asynchronous()) {
      Bisect();
    } else {
      Scan();
    }
    return std::move(out_);
  }

 private:
  struct State {
    Set used = 0;
    Set first = 0;  // devices of the first stage
  };
  struct Value {
    double slack = kForever;  // synchronous: the time to fill
    uint8_t next = 0;         // boundary at which the stage after the first begins
    uint8_t next_first = 0;   // its devices
  };

  std::vector<int> Members(Set set) const {
    std::vector<int> members;
    for (int d = 0; d < devices_; ++d) {
      if ((set >> d & 1) != 0) members.push_back(d);
    }
    return members;
  }

  // Among devices that are alike, those with the lowest numbers are used first.
  void FindOrders() {
    std::vector<int> before(static_cast<size_t>(devices_), -1);  // the last one before it that is alike
    for (int d = 0; d < devices_; ++d) {
      for (int other = d - 1; other >= 0 && before[static_cast<size_t>(d)] < 0; --other) {
        if (Alike(problem_, d, other)) before[static_cast<size_t>(d)] = other;
      }
    }
    ordered_.assign(all_ + 1, true);
    for (Set set = 0; set <= all_; ++set) {
      for (int d = 0; d < devices_; ++d) {
        const int other = before[static_cast<size_t>(d)];
        if ((set >> d & 1) != 0 && other >= 0 && (set >> other & 1) == 0) ordered_[set] = false;
      }
    }
    // Numbers of pairs (used, first) with `first` within `used`.
    pair_.assign((all_ + 1) * (all_ + 1), -1);
    for (Set used = 1; used <= all_; ++used) {
      for (Set first = used; first > 0; first = (first - 1) & used) pair_[used * (all_ + 1) + first] = pairs_++;
    }
  }

  void FillTables() {
    const auto pieces = static_cast<size_t>(pieces_);
    compute_.assign(pieces * (pieces + 1) * (all_ + 1), kForever);
    reduce_.assign(compute_.size(), 0);
    sends_.assign(compute_.size(), 0);
    for (int p = 0; p < pieces_; ++p) {
      for (int end = p + 1; end <= pieces_; ++end) {
        for (Set set = 1; set <= all_; ++set) {
          const PipelineStage stage{Bound(p), Bound(end), Members(set)};
          if (!Fits(stage)) continue;  // kForever
          const StageSeconds seconds = SecondsOfStage(problem_, stage);
          compute_[At(p, end, set)] = seconds.computes;
          sends_[At(p, end, set)] = seconds.sends;
          reduce_[At(p, end, set)] = StageReductionSeconds(problem_, stage);
        }
      }
    }
    moves_.assign((pieces + 1) * static_cast<size_t>(all_ + 1) * (all_ + 1), 0);
    for (int p = 1; p < pieces_; ++p) {
      for (Set from = 1; from <= all_; ++from) {
        const Set rest = all_ & ~from;
        for (Set to = rest; to > 0; to = (to - 1) & rest) {
          moves_[MoveAt(p, from, to)] = TransferSeconds(problem_, Members(from), Members(to), Bound(p));
        }
      }
    }
    capacity_.assign((pieces + 1) * (all_ + 1), 0);
    for (int p = 1; p <= pieces_; ++p) {
      for (Set set = 1; set <= all_; ++set) {
        for (const int d : Members(set)) {
          capacity_[static_cast<size_t>(p) * (all_ + 1) + set] +=
              1 / std::max(problem_.WorkOf(0, Bound(p), d).variable, 1e-15);
        }
      }
    }
  }
  bool Fits(const PipelineStage& stage) const {
    std::vector<StepTimeProblem::Work> work;
    for (const int d : stage.devices) work.push_back(problem_.WorkOf(stage.first, stage.end, d));
    const Shares shares = BalancedSamples(work, problem_.samples());
    const double state = problem_.request().training.state_factor * problem_.WeightBytes(stage.first, stage.end);
    for (size_t i = 0; i < stage.devices.size(); ++i) {
      const double limit = problem_.MemoryBytes(stage.devices[i]);
      const double kept = shares.shares[i] * problem_.ActivationBytes(stage.first, stage.end, stage.devices[i]);
      if (limit > 0 && shares.shares[i] > 0 && state + steps_kept_ * kept / problem_.micro_batches() > limit)
        return false;
    }
    return true;
  }
  int Bound(int p) const { return bounds_[static_cast<size_t>(p)]; }
  size_t At(int p, int end, Set set) const {
    return (static_cast<size_t>(p) * static_cast<size_t>(pieces_ + 1) + static_cast<size_t>(end)) * (all_ + 1) + set;
  }
  size_t MoveAt(int p, Set from, Set to) const {
    return (static_cast<size_t>(p) * (all_ + 1) + from) * (all_ + 1) + to;
  }
  size_t ValueAt(int p, const State& state) const {
    const auto pair = static_cast<size_t>(pair_[state.used * (all_ + 1) + state.first]);
    return static_cast<size_t>(p) * static_cast<size_t>(pairs_) + pair;
  }

  // All of the work on all devices, without fixed times and transfers.
  double LeastSeconds() const { return 1 / capacity_[static_cast<size_t>(pieces_) * (all_ + 1) + all_]; }

  // All stages in turn on the slowest device, with the slowest transfers between all pieces.
  double SlowestSeconds() const {
    double seconds = 0;
    for (int p = 0; p < pieces_; ++p) {
      double slowest = 0;
      for (int d = 0; d < devices_; ++d) {
        slowest = std::max(slowest, problem_.WorkOf(Bound(p), Bound(p + 1), d).At(1));
        for (int other = 0; other < devices_ && p > 0; ++other) {
          if (other != d) slowest = std::max(slowest, moves_[MoveAt(p, Set{1} << d, Set{1} << other)]);
        }
      }
      seconds += 3 * slowest;
    }
    for (Set set = 1; set <= all_; ++set) seconds = std::max(seconds, 2 * reduce_[At(0, pieces_, set)]);
    return seconds;
  }

  void Bisect() {
    double low = LeastSeconds();
    while (out_.seconds > low * (1 + kExactGap)) {
      const double middle =
          std::min(std::sqrt(std::max(low, 1e-12) * out_.seconds), out_.seconds * (1 - kExactGap / 2));
      const bool feasible = Feasible(middle);
      if (limits_.Spent()) break;
      if (feasible) {
        const double before = out_.seconds;
        Offer(Reconstruct());
        if (out_.seconds >= before) break;  // only by rounding
      } else if (out_.stages.empty() && middle > out_.seconds / 2) {
        break;  // nothing fits
      } else {
        low = middle;
      }
    }
    out_.lower_bound = std::min(low, out_.seconds);
  }

  // Bounds of the slowest stage, from the least that is possible to that of the best single stage.
  void Scan() {
    constexpr int kBounds = 24;
    const double low = std::max(LeastSeconds(), 1e-12), high = out_.seconds;
    for (const bool with_reductions : {true, false}) {
      reduction_weight_ = with_reductions ? problem_.micro_batches() : 0;
      for (int i = 0; i < kBounds && !limits_.Spent(); ++i) {
        if (Feasible(low * std::pow(high / low, (i + 1.0) / kBounds))) Offer(Reconstruct());
      }
    }
  }

  void Offer(std::vector<PipelineStage> stages) {
    const double seconds = SecondsOfPipeline(problem_, stages).step;
    if (!out_.stages.empty() && seconds >= out_.seconds) {
      const bool known = std::ranges::find(out_.found, stages) != out_.found.end();
      if (!problem_.asynchronous() && !known) out_.found.insert(out_.found.begin(), std::move(stages));
      return;
    }
    out_.seconds = seconds;
    out_.stages = stages;
    out_.found.push_back(std::move(stages));
  }

  // Whether a pipeline exists whose closed form does not exceed `seconds`, or if synchronous, of whose stages none
  // does; then begin_ is the first state of the one with the least slack.
  bool Feasible(double seconds) {
    values_.assign(static_cast<size_t>(pieces_ + 1) * static_cast<size_t>(pairs_), {});
    states_.assign(static_cast<size_t>(pieces_) + 1, {});
    for (int end = pieces_; end > 0; --end) {
      if (limits_.Spent()) return false;
      if (end == pieces_) {
        for (Set set = 1; set <= all_; ++set) Extend({}, end, set, seconds);
        continue;
      }
      const std::vector<State> states = states_[static_cast<size_t>(end)];
      for (const State& state : states) {
        const Set rest = all_ & ~state.used;
        for (Set set = rest; set > 0; set = (set - 1) & rest) Extend(state, end, set, seconds);
      }
    }
    double least = kForever;
    for (const State& state : states_[0]) {
      const double slack = values_[ValueAt(0, state)].slack;
      if (slack >= least) continue;
      least = slack;
      begin_ = state;
    }
    return least < kForever;
  }

  // Puts a stage of `set` before the suffix that begins at boundary `end` with `after`.
  void Extend(const State& after, int end, Set set, double seconds) {
    const State state{after.used | set, set};
    if (!ordered_[state.used]) return;
    const bool last = end == pieces_, asynchronous = problem_.asynchronous();
    const double moves = last ? 0 : moves_[MoveAt(end, set, after.first)];
    const double next = last ? 0 : values_[ValueAt(end, after)].slack;
    if (asynchronous ? 2 * moves + next > seconds : moves > seconds) return;
    for (int p = end - 1; p >= 0; --p) {
      const double compute = compute_[At(p, end, set)], reduces = reduce_[At(p, end, set)];
      if (compute > seconds) break;  // longer stages compute longer
      if (sends_[At(p, end, set)] > seconds) continue;
      double slack = compute + 2 * moves + reduction_weight_ * reduces + next;
      if (asynchronous) {
        slack = compute - seconds + (last ? 0 : std::max(0.0, 2 * moves + next));
        if (slack + reduces > 0) continue;
      }
      if (p > 0 &&
          (state.used == all_ || seconds * capacity_[static_cast<size_t>(p) * (all_ + 1) + (all_ & ~state.used)] < 1)) {
        continue;  // the devices that are left cannot do the rest in time
      }
      Value& value = values_[ValueAt(p, state)];
      if (slack >= value.slack) continue;
      if (value.slack == kForever) states_[static_cast<size_t>(p)].push_back(state);
      value = {slack, static_cast<uint8_t>(end), static_cast<uint8_t>(after.first)};
    }
  }

  std::vector<PipelineStage> Reconstruct() const {
    std::vector<PipelineStage> stages;
    State state = begin_;
    for (int p = 0; p < pieces_;) {
      const Value& value = values_[ValueAt(p, state)];
      stages.push_back({Bound(p), Bound(value.next), Members(state.first)});
      p = value.next;
      state = {state.used & ~state.first, value.next_first};
    }
    return stages;
  }

  const StepTimeProblem& problem_;
  const Budget& limits_;
  const double steps_kept_;
  ExactPipeline out_;
  const std::vector<int> bounds_;
  int devices_ = 0;
  int pieces_ = 0;
  int pairs_ = 0;
  double reduction_weight_ = 0;  // of synchronous pipelines
  Set all_ = 0;
  std::vector<bool> ordered_;    // by set
  std::vector<int> pair_;        // by used and first
  std::vector<double> compute_;  // by first piece, end and set
  std::vector<double> reduce_, sends_;
  std::vector<double> moves_;     // by boundary and both sets
  std::vector<double> capacity_;  // by boundary and set: batches a second of what is before it
  std::vector<Value> values_;
  std::vector<std::vector<State>> states_;  // reachable, by boundary
  State begin_;
};

}  // namespace

absl::StatusOr<ExactPipeline> FindExactPipeline(const StepTimeProblem& problem, const Budget& limits,
                                                double steps_kept) {
  if (problem.devices() > kMostExactDevices) {
    return base::InvalidArgument("the exact search is for at most {} devices, the cluster has {}: use planner local",
                                 kMostExactDevices, problem.devices());
  }
  return PipelineSearch(problem, limits, steps_kept).Run();
}

}  // namespace medley::sched
