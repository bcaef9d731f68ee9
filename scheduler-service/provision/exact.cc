#include "scheduler-service/provision/exact.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "common/base/quantity.h"
#include "common/base/status.h"
#include "common/model/planning.h"
#include "scheduler-service/cost/evaluate.h"
#include "scheduler-service/cost/problem.h"

namespace medley::sched {
namespace {

constexpr int kUnbounded = 1'000'000'000;

class Walk {
 public:
  Walk(const Problem& problem, std::vector<StageChoice> stages)
      : problem_(problem.ForStages(static_cast<int>(stages.size()))), stages_(std::move(stages)) {
    for (size_t i = 0; i < stages_.size(); ++i) {
      const StageChoice& s = stages_[i];
      terms_.push_back(problem_.TermsIn(stages_, i));
      load_.Add(problem_.Servers(s.first, s.last, s.type));
    }
  }

  std::optional<Provisioned> Run() {
    if (!Begin()) return std::nullopt;
    do {
      const Score score = ScoreOf(problem_, stages_);
      if (!Fits(score)) break;
      if (!best_ || score.cost < best_->score.cost * (1 - kSameCost)) best_ = Provisioned{stages_, score};
      const double bound = problem_.Cost(RateBound(score.throughput) * score.throughput, score.throughput);
      if (bound >= best_->score.cost * (1 - kSameCost)) break;
      throughput_ = score.throughput;
    } while (RaiseSlowest());
    const double budget = problem_.request().constraints.budget_usd;
    if (best_ && budget > 0 && best_->score.cost > budget * (1 + kTolerance)) return std::nullopt;
    return best_;
  }

 private:
  bool Begin() {
    const double required = problem_.RequiredThroughput();
    for (size_t i = 0; i < stages_.size(); ++i) {
      StageChoice& s = stages_[i];
      if (!problem_.Allowed(s.first, s.last, s.type)) return false;
      s.units = problem_.MinUnits(terms_[i], required, problem_.limit(s.type));
      if (s.units == 0) return false;
    }
    return true;
  }

  // Checks every constraint on a quantity that grows with throughput.
  bool Fits(const Score& score) const {
    const std::vector<int> used = UnitsByType(problem_, stages_, score.server_units);
    for (int t = 0; t < problem_.types(); ++t) {
      if (used[static_cast<size_t>(t)] > problem_.limit(t)) return false;
    }
    const model::Constraints& c = problem_.request().constraints;
    const int trainers =
        std::accumulate(stages_.begin(), stages_.end(), 0, [](int sum, const StageChoice& s) { return sum + s.units; });
    if (c.max_units > 0 && trainers > c.max_units) return false;
    return c.max_cost_per_hour <= 0 || score.hourly <= c.max_cost_per_hour * (1 + kTolerance);
  }

  // A lower bound of USD/h per sample/s for all pipelines with throughput `x` or more.
  double RateBound(double x) const {
    double rate = load_.any ? problem_.server_price() * load_.seconds / problem_.batch() * (1 - 1e-12) : 0;
    for (size_t i = 0; i < stages_.size(); ++i) {
      rate += problem_.price(stages_[i].type) * problem_.UnitRateBound(terms_[i], x);
    }
    return rate;
  }

  // Advances to the next breakpoint. False if a stage cannot become fast enough.
  bool RaiseSlowest() {
    const double next = std::nextafter(throughput_, std::numeric_limits<double>::infinity());
    for (size_t i = 0; i < stages_.size(); ++i) {
      StageChoice& s = stages_[i];
      if (problem_.Throughput(terms_[i], s.units) >= next) continue;
      if (s.units < problem_.limit(s.type) && problem_.Throughput(terms_[i], s.units + 1) >= next) {
        ++s.units;
        continue;
      }
      s.units = problem_.MinUnits(terms_[i], next, problem_.limit(s.type));
      if (s.units == 0) return false;
    }
    return true;
  }

  const Problem problem_;
  std::vector<StageChoice> stages_;
  std::vector<PlacedTerms> terms_;
  ServerLoad load_;
  double throughput_ = 0;
  std::optional<Provisioned> best_;
};

model::Reason OutOfReach(const Problem& problem, double available) {
  const model::Constraints& c = problem.request().constraints;
  const double needed = problem.RequiredThroughput();
  const bool deadline = needed > c.min_throughput;
  return {deadline ? "deadline" : "minThroughput", "", deadline ? needed : c.min_throughput, available,
          fmt::format("no number of units reaches {} samples/s, because the part of the work that more units do not "
                      "speed up limits the throughput to {}: {}",
                      base::FormatDecimal(needed, 1), base::FormatDecimal(available, 1),
                      deadline ? "allow more time" : "lower minThroughput")};
}

}  // namespace

std::optional<Provisioned> ProvisionExact(const Problem& problem, std::vector<StageChoice> stages) {
  return Walk(problem, std::move(stages)).Run();
}

std::vector<model::Reason> WhyNotProvisioned(const Problem& of, std::vector<StageChoice> stages) {
  const Problem problem = of.ForStages(static_cast<int>(stages.size()));
  double reachable = std::numeric_limits<double>::infinity();
  const double required = problem.RequiredThroughput();
  bool reached = true;
  for (size_t i = 0; i < stages.size(); ++i) {
    StageChoice& s = stages[i];
    const PlacedTerms terms = problem.TermsIn(stages, i);
    reachable = std::min(reachable, problem.Throughput(terms, kUnbounded));
    s.units = problem.MinUnits(terms, required, kUnbounded);
    reached = reached && s.units > 0;
    if (s.units == 0) s.units = problem.min_units();
  }
  if (!reached) return {OutOfReach(problem, reachable)};
  return Evaluate(problem, stages).violations;
}

}  // namespace medley::sched
