#include "tests/bench/economics/replay.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "common/base/status.h"
#include "operator/lifecycle/replan_decision.h"
#include "scheduler-service/cost/evaluate.h"
#include "scheduler-service/planner/planners.h"

namespace medley::bench {
namespace {

constexpr double kDay = 86400;

base::WallTime At(double seconds) {
  return base::WallTime(std::chrono::nanoseconds(static_cast<int64_t>(seconds * 1e9)));
}

struct Running {
  std::vector<sched::StageChoice> stages;
  std::vector<int> units;  // by type, servers included
  double throughput = 0;
  double usd = 0;  // for the samples that remained when the plan was made
  std::string text;
};

class Player {
 public:
  Player(const Scenario& scenario, const Strategy& strategy)
      : s_(scenario),
        strategy_(strategy),
        recorded_(scenario.request.resources.size(), 0),
        published_(recorded_.size(), 0),
        published_at_(recorded_.size(), 0) {}

  absl::StatusOr<Outcome> Run() {
    size_t next = 0;
    for (; next < s_.changes.size() && s_.changes[next].time <= s_.begin; ++next) Take(s_.changes[next]);
    out_.strategy = strategy_.name;
    time_ = s_.begin;
    left_ = s_.request.training.TotalSamples();
    auto first = Plan();
    if (!first) return base::FailedPrecondition("{}: no plan at the beginning", strategy_.name);
    current_ = *std::move(first);
    last_move_ = time_ - s_.cooldown_seconds;
    Step();
    while (left_ > 0) {
      const double until = next < s_.changes.size() ? std::max(s_.changes[next].time, time_) : s_.end * 2;
      Train(until);
      if (left_ <= 0) break;
      bool published = false;
      for (; next < s_.changes.size() && s_.changes[next].time <= time_; ++next)
        published = Take(s_.changes[next]) || published;
      if (published && strategy_.replan) Consider();
    }
    out_.hours = (time_ - s_.begin) / 3600;
    out_.share_above_floor = 1 - stood_still_ / (time_ - s_.begin);
    return out_;
  }

 private:
  // True when the price was published.
  bool Take(const PriceChange& change) {
    recorded_[change.type] = change.usd_per_unit_hour;
    double& published = published_[change.type];
    const bool tell = published == 0 || strategy_.follow_always
                          ? published != change.usd_per_unit_hour
                          : sched::ShouldPublish(s_.hysteresis, published, At(published_at_[change.type]),
                                                 change.usd_per_unit_hour, At(change.time));
    if (!tell) return false;
    published = change.usd_per_unit_hour;
    published_at_[change.type] = change.time;
    ++out_.publications;
    return true;
  }

  double Hourly(const std::vector<int>& units, const std::vector<double>& prices) const {
    double sum = 0;
    for (size_t t = 0; t < units.size(); ++t) sum += units[t] * prices[t];
    return sum;
  }

  // The cheapest plan over all places, at the published prices, for the remaining samples.
  std::optional<Running> Plan() {
    ++out_.plans;
    std::set<std::string> places(s_.place.begin(), s_.place.end());
    if (places.size() > 1) places.erase("");
    std::optional<Running> best;
    for (const std::string& place : places) {
      auto plan = PlanIn(place);
      if (plan && (!best || plan->usd < best->usd * (1 - 1e-9))) best = std::move(plan);
    }
    return best;
  }

  std::optional<Running> PlanIn(const std::string& place) const {
    model::PlanRequest request = s_.request;
    request.training.remaining_samples = std::max(left_, 1.0);
    if (const size_t at = request.server_type.find("{place}"); at != std::string::npos) {
      request.server_type.replace(at, 7, place);
    }
    std::vector<size_t> index;  // indices of the types in this place
    request.resources.clear();
    for (size_t t = 0; t < published_.size(); ++t) {
      if (!s_.place[t].empty() && s_.place[t] != place) continue;
      if (published_[t] <= 0 || (strategy_.on_demand_only && !s_.on_demand[t])) continue;
      request.resources.push_back(s_.request.resources[t]);
      request.resources.back().price_per_unit_hour = published_[t];
      index.push_back(t);
    }
    const auto problem = sched::Problem::Compile(request);
    if (!problem.ok()) return std::nullopt;
    const auto best = Cheapest(*problem);
    if (!best) return std::nullopt;
    Running running;
    running.throughput = best->score.throughput;
    running.usd = best->score.cost;
    running.units.assign(published_.size(), 0);
    const std::vector<int> used = UnitsByType(*problem, best->stages, best->score.server_units);
    for (size_t i = 0; i < index.size(); ++i) running.units[index[i]] = used[i];
    for (sched::StageChoice stage : best->stages) {
      running.text += fmt::format("{}{}-{}@{}x{}", running.text.empty() ? "" : " ", stage.first, stage.last,
                                  stage.units, problem->type(stage.type).name);
      stage.type = static_cast<int>(index[static_cast<size_t>(stage.type)]);
      running.stages.push_back(stage);
    }
    return running;
  }

  std::optional<sched::Provisioned> Cheapest(const sched::Problem& problem) const {
    if (!strategy_.single_type) {
      const sched::Budget budget(clock_, base::SteadyTime::max(), {});
      const auto solution = sched::MakeExact()->SolveStages(problem, 1, budget);
      return solution.ok() ? solution->best : std::nullopt;
    }
    std::optional<sched::Provisioned> best;
    for (int t = 0; t < problem.types(); ++t) {
      auto plan = sched::SingleType(problem, t);
      if (plan && (!best || plan->score.cost < best->score.cost)) best = std::move(plan);
    }
    return best;
  }

  void Consider() {
    const auto candidate = Plan();
    if (!candidate) return;
    const bool same = candidate->stages == current_.stages;
    ops::MoveInputs in;
    in.remaining_samples = left_;
    in.current_usd_per_hour = Hourly(current_.units, published_);
    in.current_estimated_throughput = current_.throughput;
    in.candidate_usd_per_hour = Hourly(candidate->units, published_);
    in.candidate_estimated_throughput = candidate->throughput;
    in.same_plan = same;
    in.pause_seconds = s_.pause_seconds;
    in.warm_up_seconds = s_.warm_up_seconds;
    in.min_saving = s_.min_saving;
    in.cooldown_seconds = s_.cooldown_seconds;
    in.seconds_since_last_move = time_ - last_move_;
    const bool move = strategy_.follow_always ? !same : ops::DecideMove(in).move;
    if (!move) return;
    ++out_.moves;
    last_move_ = time_;
    if (!strategy_.free_moves) {
      out_.usd += Hourly(candidate->units, recorded_) / 3600 * (s_.warm_up_seconds + s_.pause_seconds);
      stood_still_ += s_.pause_seconds;
      time_ += s_.pause_seconds;
    }
    current_ = *candidate;
    Step();
  }

  // Runs the job until `until` or until its last sample.
  void Train(double until) {
    const double seconds = std::min(until - time_, left_ / current_.throughput);
    const double done = time_ + seconds;
    const double hourly = Hourly(current_.units, recorded_);
    for (double day = std::floor(time_ / kDay + 1) * kDay; day < done; day += kDay) {
      out_.steps.push_back({day, hourly, current_.text});
    }
    out_.usd += hourly / 3600 * seconds;
    left_ -= seconds * current_.throughput;
    if (left_ < 1e-6 * current_.throughput) left_ = 0;
    time_ = done;
  }

  void Step() { out_.steps.push_back({time_, Hourly(current_.units, recorded_), current_.text}); }

  const Scenario& s_;
  const Strategy& strategy_;
  const base::SystemClock clock_;
  std::vector<double> recorded_, published_, published_at_;
  Running current_;
  double time_ = 0, left_ = 0, last_move_ = 0, stood_still_ = 0;
  Outcome out_;
};

}  // namespace

absl::StatusOr<Outcome> Replay(const Scenario& scenario, const Strategy& strategy) {
  return Player(scenario, strategy).Run();
}

}  // namespace medley::bench
