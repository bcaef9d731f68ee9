#include "scheduler-service/graph/bound.h"

#include <algorithm>
#include <map>
#include <string>

#include "scheduler-service/devices/shares.h"

namespace medley::sched {
namespace {

// Devices of one pool are alike: their seconds of each operation, and how many they are.
struct Kind {
  int device = 0;  // one of them
  int count = 0;
};

std::vector<Kind> KindsOf(const DeviceProblem& problem) {
  std::map<std::string, Kind> kinds;
  for (int d = 0; d < problem.devices(); ++d) {
    Kind& kind = kinds[problem.device(d).pool];
    kind.device = d;
    ++kind.count;
  }
  std::vector<Kind> out;
  for (const auto& [pool, kind] : kinds) out.push_back(kind);
  return out;
}

// The bound for weights of kinds (each device of a kind gets an equal part), and its gradient.
double WorkFor(const DeviceProblem& problem, const std::vector<Kind>& kinds, const std::vector<double>& weights,
               std::vector<double>& gradient) {
  std::ranges::fill(gradient, 0);
  double sum = 0;
  for (int i = 0; i < problem.layers(); ++i) {
    size_t best = 0;
    double least = kForever;
    for (size_t k = 0; k < kinds.size(); ++k) {
      const double seconds = weights[k] / kinds[k].count * problem.LeastWorkOf(i, i + 1, kinds[k].device).At(1);
      if (seconds < least) {
        least = seconds;
        best = k;
      }
    }
    sum += least;
    gradient[best] += problem.LeastWorkOf(i, i + 1, kinds[best].device).At(1) / kinds[best].count;
  }
  return sum;
}

double WorkBound(const DeviceProblem& problem) {
  const std::vector<Kind> kinds = KindsOf(problem);
  std::vector<double> weights(kinds.size(), 1.0 / static_cast<double>(kinds.size())), gradient(kinds.size());
  double best = 0;
  // Every round gives a bound, so a large question may have few.
  constexpr int64_t kMostRounds = 300, kMostCompared = 100'000'000;
  const auto compared = static_cast<int64_t>(problem.layers()) * std::ssize(kinds);
  const auto rounds = static_cast<int>(std::clamp<int64_t>(kMostCompared / compared, 1, kMostRounds));
  for (int round = 0; round < rounds; ++round) {
    best = std::max(best, WorkFor(problem, kinds, weights, gradient));
    // Multiplicative weights stay on the simplex.
    const double largest = std::ranges::max(gradient);
    if (largest <= 0) break;
    double sum = 0;
    for (size_t k = 0; k < weights.size(); ++k) {
      weights[k] *= 1 + gradient[k] / largest / (1 + 0.1 * round);
      sum += weights[k];
    }
    for (double& weight : weights) weight /= sum;
  }
  return best;
}

// The least mean, over samples, of the seconds of the replica that has the sample: min of sum s (f + s v) over shares
// s. At the minimum all f + 2 s v are equal, which is what BalancedShares makes of (f, 2 v).
double LeastMeanSeconds(const DeviceProblem& problem, int operation) {
  std::vector<DeviceProblem::Work> work;
  for (int d = 0; d < problem.devices(); ++d) {
    work.push_back(problem.LeastWorkOf(operation, operation + 1, d));
    work.back().variable *= 2;
  }
  const std::vector<double> shares = BalancedShares(work).shares;
  double mean = 0;
  for (size_t d = 0; d < work.size(); ++d) mean += shares[d] * (work[d].fixed + shares[d] * work[d].variable / 2);
  return mean;
}

double PathBound(const DeviceProblem& problem) {
  const auto count = static_cast<size_t>(problem.layers());
  std::vector<double> least(count);  // both passes, divided over all devices
  for (int i = 0; i < problem.layers(); ++i) least[static_cast<size_t>(i)] = LeastMeanSeconds(problem, i);
  // To the end of the forward pass and back to the operation; a backward pass follows those of its consumers.
  std::vector<double> after(count, 0);
  double longest = 0;
  for (int i = problem.layers(); i-- > 0;) {
    const auto at = static_cast<size_t>(i);
    after[at] += least[at];
    if (problem.WeightBytes(i, i + 1) > 0) longest = std::max(longest, after[at]);
    for (const int input : problem.inputs(i)) {
      double& before = after[static_cast<size_t>(input)];
      before = std::max(before, after[at]);
    }
  }
  return longest;
}

}  // namespace

GraphBound BoundOfGraph(const DeviceProblem& problem) {
  return {WorkBound(problem), problem.micro_batches() == 1 ? PathBound(problem) : 0};
}

}  // namespace medley::sched
