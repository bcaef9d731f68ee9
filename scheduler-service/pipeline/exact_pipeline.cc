#include "scheduler-service/pipeline/exact_pipeline.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>

#include "common/base/status.h"
#include "scheduler-service/devices/shares.h"
#include "scheduler-service/pipeline/closed_form.h"
#include "scheduler-service/pipeline/stage_tables.h"
#include "scheduler-service/pipeline/step_bound.h"

namespace medley::sched {
namespace {

using Set = StageTables::Set;
using State = StageTables::State;

constexpr int kCycleBisections = 24;

class PipelineSearch {
 public:
  PipelineSearch(const DeviceProblem& problem, const Budget& limits, double steps_kept)
      : problem_(problem), limits_(limits), tables_(problem, limits, steps_kept) {
    out_.pieces_joined = tables_.joined();
  }

  ExactPipeline Run() {
    if (tables_.stopped()) return std::move(out_);  // the tables are not complete
    out_.simulated_bound = SimulatedBound(problem_, tables_);
    for (Set set = 1; set <= tables_.all(); ++set) {  // one stage
      if (tables_.Computes(0, tables_.pieces(), set) < kForever) Offer({{0, problem_.layers(), tables_.Members(set)}});
    }
    // Where no single stage fits, the slowest possible pipeline is the start.
    if (out_.stages.empty()) out_.seconds = SlowestSeconds();
    if (problem_.asynchronous()) {
      Bisect();
    } else {
      Scan();
      Prove();
    }
    return std::move(out_);
  }

 private:
  struct Value {
    double slack = kForever;  // synchronous: the time to fill
    uint8_t next = 0;         // boundary at which the stage after the first begins
    uint8_t next_first = 0;   // its devices
  };

  // All of the work on all devices, without fixed times and transfers.
  double LeastSeconds() const { return 1 / tables_.Capacity(tables_.pieces(), tables_.all()); }

  // All stages in turn on the slowest device, with the slowest transfers between all pieces.
  double SlowestSeconds() const {
    double seconds = 0;
    for (int p = 0; p < tables_.pieces(); ++p) {
      double slowest = 0;
      for (int d = 0; d < problem_.devices(); ++d) {
        slowest = std::max(slowest, problem_.WorkOf(tables_.Bound(p), tables_.Bound(p + 1), d).At(1));
        for (int other = 0; other < problem_.devices() && p > 0; ++other) {
          if (other != d) slowest = std::max(slowest, tables_.Moves(p, Set{1} << d, Set{1} << other));
        }
      }
      seconds += 3 * slowest;
    }
    for (Set set = 1; set <= tables_.all(); ++set)
      seconds = std::max(seconds, 2 * tables_.Reduces(0, tables_.pieces(), set));
    return seconds;
  }

  void Bisect() {
    double low = LeastSeconds();
    while (out_.seconds > low * (1 + kExactGap)) {
      const double middle =
          std::min(std::sqrt(std::max(low, 1e-12) * out_.seconds), out_.seconds * (1 - kExactGap / 2));
      const bool feasible = Feasible(middle);
      if (tables_.stopped()) break;
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

  // The least slowest cycle that any pipeline may have: bisected as for asynchronous ones without reductions.
  double LeastCycle() {
    double low = LeastSeconds(), high = out_.seconds * 2;
    by_slack_ = true;
    for (int i = 0; i < kCycleBisections && high > low * (1 + kStepGap) && !limits_.Spent(); ++i) {
      const double middle = std::sqrt(std::max(low, 1e-12) * high);
      const bool feasible = Feasible(middle);
      if (tables_.stopped()) break;
      (feasible ? high : low) = middle;
    }
    by_slack_ = false;
    return low;
  }

  // The least time to fill of pipelines whose stages and reductions take no more; nullopt: there is none, or no time.
  std::optional<double> LeastFill(double most_cycle, double most_reduction) {
    most_reduction_ = most_reduction;
    const bool feasible = Feasible(most_cycle);
    most_reduction_ = kForever;
    if (!feasible || limits_.Spent()) return std::nullopt;
    const double fill = values_[tables_.StateAt(0, begin_)].slack;
    Offer(Reconstruct());
    return fill;
  }

  void Prove() {
    if (out_.stages.empty() || limits_.Spent()) return;
    reduction_weight_ = 0;
    const double least = LeastCycle();
    if (limits_.Spent()) return;
    out_.lower_bound =
        LeastStepSeconds({.micro_batches = static_cast<double>(problem_.micro_batches()),
                          .least_cycle = least,
                          .best = [this] { return out_.seconds; },
                          .least_fill = [this](double cycle, double reduction) { return LeastFill(cycle, reduction); },
                          .spent = [this] { return limits_.Spent(); }});
  }

  void Offer(std::vector<PipelineStage> stages) {
    const double seconds = SecondsOfPipeline(problem_, stages);
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
    values_.assign(tables_.states(), {});
    states_.assign(static_cast<size_t>(tables_.pieces()) + 1, {});
    for (int end = tables_.pieces(); end > 0; --end) {
      if (tables_.Stopped()) return false;
      if (end == tables_.pieces()) {
        for (Set set = 1; set <= tables_.all(); ++set) Extend({}, end, set, seconds);
        continue;
      }
      const std::vector<State> states = states_[static_cast<size_t>(end)];
      for (const State& state : states) {
        if (tables_.Stopped()) return false;
        const Set rest = tables_.all() & ~state.used;
        for (Set set = rest; set > 0; set = (set - 1) & rest) Extend(state, end, set, seconds);
      }
    }
    double least = kForever;
    for (const State& state : states_[0]) {
      const double slack = values_[tables_.StateAt(0, state)].slack;
      if (slack >= least) continue;
      least = slack;
      begin_ = state;
    }
    return least < kForever;
  }

  // Puts a stage of `set` before the suffix that begins at boundary `end` with `after`.
  void Extend(const State& after, int end, Set set, double seconds) {
    const State state{after.used | set, set};
    if (!tables_.ordered(state.used)) return;
    const bool last = end == tables_.pieces(), by_slack = problem_.asynchronous() || by_slack_;
    const double moves = last ? 0 : tables_.Moves(end, set, after.first);
    const double next = last ? 0 : values_[tables_.StateAt(end, after)].slack;
    if (by_slack ? 2 * moves + next > seconds : moves > seconds) return;
    for (int p = end - 1; p >= 0; --p) {
      const double compute = tables_.Computes(p, end, set), reduces = by_slack_ ? 0 : tables_.Reduces(p, end, set);
      if (compute > seconds) break;  // longer stages compute longer
      if (tables_.Sends(p, end, set) > seconds || reduces > most_reduction_) continue;
      double slack = compute + 2 * moves + reduction_weight_ * reduces + next;
      if (by_slack) {
        slack = compute - seconds + (last ? 0 : std::max(0.0, 2 * moves + next));
        if (slack + reduces > 0) continue;
      }
      if (p > 0 && (state.used == tables_.all() || seconds * tables_.Capacity(p, tables_.all() & ~state.used) < 1)) {
        continue;  // the devices that are left cannot do the rest in time
      }
      Value& value = values_[tables_.StateAt(p, state)];
      if (slack >= value.slack) continue;
      if (value.slack == kForever) states_[static_cast<size_t>(p)].push_back(state);
      value = {slack, static_cast<uint8_t>(end), static_cast<uint8_t>(after.first)};
    }
  }

  std::vector<PipelineStage> Reconstruct() const {
    std::vector<PipelineStage> stages;
    State state = begin_;
    for (int p = 0; p < tables_.pieces();) {
      const Value& value = values_[tables_.StateAt(p, state)];
      stages.push_back({tables_.Bound(p), tables_.Bound(value.next), tables_.Members(state.first)});
      p = value.next;
      state = {state.used & ~state.first, value.next_first};
    }
    return stages;
  }

  const DeviceProblem& problem_;
  const Budget& limits_;
  StageTables tables_;
  ExactPipeline out_;
  double reduction_weight_ = 0;  // synchronous pipelines only, like the next two
  double most_reduction_ = kForever;
  bool by_slack_ = false;  // cycles are searched as in asynchronous ones, without reductions
  std::vector<Value> values_;
  std::vector<std::vector<State>> states_;  // reachable, by boundary
  State begin_;
};

}  // namespace

absl::StatusOr<ExactPipeline> FindExactPipeline(const DeviceProblem& problem, const Budget& limits, double steps_kept) {
  if (problem.devices() > kMostExactDevices) {
    return base::InvalidArgument("the exact search is for at most {} devices, the cluster has {}: use planner local",
                                 kMostExactDevices, problem.devices());
  }
  return PipelineSearch(problem, limits, steps_kept).Run();
}

}  // namespace medley::sched
