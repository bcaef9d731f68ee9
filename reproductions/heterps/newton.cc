#include "reproductions/heterps/newton.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "scheduler-service/cost/evaluate.h"
#include "scheduler-service/cost/problem.h"

namespace medley::reproductions::heterps {
namespace {

using sched::KeepsConstraints;
using sched::kInfinity;
using sched::kTolerance;
using sched::PlacedTerms;
using sched::Problem;
using sched::Provisioned;
using sched::Score;
using sched::ServerLoad;
using sched::StageChoice;
using sched::StageTerms;

constexpr int kNewtonSteps = 100;
constexpr int kRepairSteps = 1000;
constexpr double kConverged = 1e-12;  // relative change of tau

// A value and its first two derivatives with respect to tau.
struct Jet {
  double value = 0, first = 0, second = 0;
};

class Newton {
 public:
  Newton(const Problem& problem, std::vector<StageChoice> stages)
      : problem_(problem.ForStages(static_cast<int>(stages.size()))), stages_(std::move(stages)) {
    for (size_t i = 0; i < stages_.size(); ++i) terms_.push_back(problem_.TermsIn(stages_, i));
  }

  std::optional<Provisioned> Run() {
    for (const StageChoice& s : stages_) {
      if (!problem_.Allowed(s.first, s.last, s.type) || problem_.limit(s.type) < problem_.min_units()) {
        return std::nullopt;
      }
    }
    const double slowest = SlowestUseful(), fastest = FastestWithinLimits(slowest);
    if (!(fastest <= slowest)) return std::nullopt;
    return Repair(Minimise(fastest, slowest));
  }

 private:
  // Seconds of a stage with k units: serial + parallel / k, for that part of it which needs most units.
  struct Part {
    double serial = 0, parallel = 0;
    double units = 0;  // real number; infinite if no number is enough
  };

  Part Needs(size_t i, double tau) const {
    Part most{0, 0, static_cast<double>(problem_.min_units())};
    const auto add = [&](double serial, double parallel) {
      double units = 0;
      if (tau < serial || (parallel > 0 && tau == serial)) {
        units = kInfinity;
      } else if (parallel > 0) {
        units = parallel / (tau - serial);
      }
      if (units > most.units) most = {serial, parallel, units};
    };
    for (const StageTerms& t : terms_[i].all()) {
      add(t.compute_serial, t.compute_parallel);
      add(t.comm_serial, t.comm_parallel);
    }
    return most;
  }
  double Units(size_t i, double tau) const { return Needs(i, tau).units; }

  // The longest useful iteration time: at the required throughput, or with the fewest units for every stage.
  double SlowestUseful() const {
    double tau = 0;
    for (const PlacedTerms& t : terms_) {
      const int least = problem_.min_units();
      tau = std::max({tau, t.ComputeSeconds(least), t.CommSeconds(least)});
    }
    const double required = problem_.RequiredThroughput();
    return required > 0 ? std::min(tau, problem_.batch() / required) : tau;
  }

  bool WithinLimits(double tau) const {
    std::vector<double> used(static_cast<size_t>(problem_.types()), 0);
    ServerLoad load;
    for (size_t i = 0; i < stages_.size(); ++i) {
      const StageChoice& s = stages_[i];
      used[static_cast<size_t>(s.type)] += Units(i, tau);
      load.Add(problem_.Servers(s.first, s.last, s.type));
    }
    if (load.any) used[static_cast<size_t>(problem_.server_type())] += load.seconds / tau;
    for (int t = 0; t < problem_.types(); ++t) {
      if (used[static_cast<size_t>(t)] > problem_.limit(t) * (1 + kTolerance)) return false;
    }
    return true;
  }

  // Bisection: the number of units only grows as tau decreases. Infinite if even `slowest` exceeds a limit.
  double FastestWithinLimits(double slowest) const {
    if (!WithinLimits(slowest)) return kInfinity;
    double low = 0, high = slowest;
    for (int i = 0; i < 100 && high - low > kConverged * high; ++i) {
      const double middle = (low + high) / 2;
      (WithinLimits(middle) ? high : low) = middle;
    }
    return high;
  }

  // f at tau, without the cost of servers, which does not depend on tau.
  Jet Cost(double tau) const {
    Jet sum;
    for (size_t i = 0; i < stages_.size(); ++i) {
      const Part part = Needs(i, tau);
      const double price = problem_.price(stages_[i].type);
      sum.value += price * tau * part.units;
      if (part.units <= problem_.min_units()) {
        sum.first += price * part.units;
        continue;
      }
      // tau * P / (tau - S): derivatives -P S / (tau - S)^2 and 2 P S / (tau - S)^3.
      const double rest = tau - part.serial;
      sum.first -= price * part.parallel * part.serial / (rest * rest);
      sum.second += 2 * price * part.parallel * part.serial / (rest * rest * rest);
    }
    return sum;
  }

  // f is convex (a sum of maxima of convex functions), so the sign of f' shows on which side the minimum is. A step
  // that leaves the bracket is replaced by a bisection.
  double Minimise(double fastest, double slowest) const {
    double low = fastest, high = slowest, tau = slowest;
    for (int i = 0; i < kNewtonSteps && high - low > kConverged * high; ++i) {
      const Jet f = Cost(tau);
      (f.first > 0 ? high : low) = tau;
      if (f.first == 0 || (f.first < 0 && tau == slowest)) return tau;
      double next = f.second > 0 ? tau - f.first / f.second : (low + high) / 2;
      if (!(next > low && next < high)) next = (low + high) / 2;
      if (std::abs(next - tau) <= kConverged * tau) return next;
      tau = next;
    }
    return tau;
  }

  std::optional<Provisioned> Repair(double tau) {
    const double required = problem_.RequiredThroughput();
    double x = std::max(problem_.batch() / tau, required);
    for (int step = 0; step < kRepairSteps; ++step) {
      if (!SetUnits(x * (1 - kTolerance), required)) return std::nullopt;
      const Score score = ScoreOf(problem_, stages_);
      if (KeepsConstraints(problem_, stages_, score)) return Provisioned{stages_, score};
      if (x <= required) return std::nullopt;
      x = std::max(required, x * 0.99);
    }
    return std::nullopt;
  }

  // Sets the fewest units for `x`, and then the fewest units for the throughput that these reach, which is at least
  // `x`.
  bool SetUnits(double x, double required) {
    for (int pass = 0; pass < 2; ++pass) {
      double reached = kInfinity;
      for (size_t i = 0; i < stages_.size(); ++i) {
        StageChoice& s = stages_[i];
        s.units = problem_.MinUnits(terms_[i], std::max(x, required), problem_.limit(s.type));
        if (s.units == 0) return false;
        reached = std::min(reached, problem_.Throughput(terms_[i], s.units));
      }
      x = reached;
    }
    return true;
  }

  const Problem problem_;
  std::vector<StageChoice> stages_;
  std::vector<PlacedTerms> terms_;
};

}  // namespace

std::optional<Provisioned> ProvisionNewton(const Problem& problem, std::vector<StageChoice> stages) {
  return Newton(problem, std::move(stages)).Run();
}

}  // namespace medley::reproductions::heterps
