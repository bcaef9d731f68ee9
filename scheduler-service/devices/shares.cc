#include "scheduler-service/devices/shares.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace medley::sched {
namespace {

// For the fixed time, and in seconds: so that no time divides by zero, nor by what is lost beside the fixed time.
constexpr double kLeastPart = 1e-9, kLeastSeconds = 1e-15;

double Variable(const DeviceProblem::Work& work) {
  return std::max({work.variable, kLeastPart * work.fixed, kLeastSeconds});
}

double Longest(const std::vector<DeviceProblem::Work>& work, const std::vector<double>& shares) {
  double longest = 0;
  for (size_t i = 0; i < work.size(); ++i) {
    if (shares[i] > 0) longest = std::max(longest, work[i].At(shares[i]));
  }
  return longest;
}

}  // namespace

Shares BalancedShares(const std::vector<DeviceProblem::Work>& work) {
  // Devices join in the order of their fixed times while these are below the time of those that joined before.
  std::vector<size_t> order(work.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](size_t i) { return work[i].fixed; });
  double speed = 0, offset = 0, seconds = std::numeric_limits<double>::infinity();
  size_t used = 0;
  for (const size_t i : order) {
    if (work[i].fixed >= seconds) break;
    speed += 1 / Variable(work[i]);
    offset += work[i].fixed / Variable(work[i]);
    seconds = (1 + offset) / speed;
    ++used;
  }
  Shares out;
  out.shares.assign(work.size(), 0);
  double sum = 0;
  for (size_t k = 0; k < used; ++k) {
    const size_t i = order[k];
    sum += out.shares[i] = std::max(0.0, (seconds - work[i].fixed) / Variable(work[i]));
  }
  for (double& share : out.shares) share /= sum;
  out.seconds = Longest(work, out.shares);
  return out;
}

Shares BalancedSamples(const std::vector<DeviceProblem::Work>& work, int samples) {
  const Shares ideal = BalancedShares(work);
  std::vector<int> counts(work.size(), 0);
  int given = 0;
  for (size_t i = 0; i < work.size(); ++i) {
    counts[i] = static_cast<int>(ideal.shares[i] * samples);
    if (ideal.shares[i] > 0 && counts[i] == 0 && given < samples) counts[i] = 1;
    given += counts[i];
  }
  const auto seconds = [&](size_t i, int count) { return work[i].At(static_cast<double>(count) / samples); };
  for (; given < samples; ++given) {
    size_t best = 0;
    double least = std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < work.size(); ++i) {
      if (ideal.shares[i] <= 0 || seconds(i, counts[i] + 1) >= least) continue;
      best = i;
      least = seconds(i, counts[i] + 1);
    }
    ++counts[best];
  }
  for (; given > samples; --given) {
    size_t worst = 0;
    for (size_t i = 0; i < work.size(); ++i) {
      if (counts[i] > 0 && (counts[worst] == 0 || seconds(i, counts[i]) > seconds(worst, counts[worst]))) worst = i;
    }
    --counts[worst];
  }
  Shares out;
  for (const int count : counts) out.shares.push_back(static_cast<double>(count) / samples);
  out.seconds = Longest(work, out.shares);
  return out;
}

}  // namespace medley::sched
