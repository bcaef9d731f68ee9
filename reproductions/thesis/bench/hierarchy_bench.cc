// The planner `hierarchy` against exact searches and dumb alternatives, on random clusters, by the simulator:
//   groups       which groups take part, against the best of all sets of them
//   exact        the search for groups against all partitions, up to 9 devices
//   ring         against one ring over the devices as given, 8 to 1,024 devices, some with slow links
//   random       the same against the best of as many random groupings as the search compares
// docs/papers/thesis.md has the figures.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "common/base/clock.h"
#include "common/base/rng.h"
#include "scheduler-service/devices/device_simulator.h"
#include "scheduler-service/hierarchy/hierarchy_planner.h"
#include "scheduler-service/planning/candidate.h"
#include "tests/unit/scheduler-service/devices/random_cluster.h"

namespace medley::reproductions::thesis {
namespace {

using sched::Arrangement;
using sched::Budget;
using sched::DeviceProblem;
using sched::DeviceSimulator;
using sched::Formation;
using sched::kForever;
using sched::MakeHierarchyPlanner;
using sched::Participation;
using sched::ProblemOf;
using sched::RandomClusterRequest;
using sched::WithSlowLinks;

double Quantile(std::vector<double> values, double q) {
  std::ranges::sort(values);
  return values.empty() ? 0 : values[static_cast<size_t>(q * static_cast<double>(values.size() - 1))];
}

double Simulated(const DeviceProblem& problem, const Arrangement& arrangement) {
  DeviceSimulator evaluator(problem, {});
  return evaluator.Seconds(BuildDataParallel(problem, WithShares(problem, arrangement))).value();
}

void Groups(int instances, uint64_t seed) {
  int within = 0, alone = 0, all = 0;
  std::vector<double> above;
  for (int i = 0; i < instances; ++i) {
    base::Rng rng(base::Mix64(seed + static_cast<uint64_t>(i)));
    const DeviceProblem problem = ProblemOf(RandomClusterRequest(rng, 2 + static_cast<int>(rng.Below(9))));
    const double bytes = problem.WeightBytes(0, problem.layers());
    const Participation chosen = ChooseGroups(problem, bytes, Formation::kBest, rng);
    const double ours = Simulated(problem, chosen.arrangement);
    double best = kForever, everything = 0, first = 0;
    for (size_t set = 1; set < size_t{1} << chosen.groups.size(); ++set) {
      std::vector<int> devices;
      for (size_t g = 0; g < chosen.groups.size(); ++g) {
        if ((set >> g & 1) != 0) devices.insert(devices.end(), chosen.groups[g].begin(), chosen.groups[g].end());
      }
      std::ranges::sort(devices);
      const double seconds = Simulated(problem, Arrange(problem, devices, bytes, Formation::kBest, rng));
      best = std::min(best, seconds);
      if (set == 1) first = seconds;
      everything = seconds;
    }
    above.push_back(ours / best - 1);
    within += ours <= 1.05 * best ? 1 : 0;
    alone += first <= 1.05 * best ? 1 : 0;
    all += everything <= 1.05 * best ? 1 : 0;
  }
  fmt::print(
      "groups: {} instances, within 5 % of the best set: {:.1f} %; always all {:.1f} %, always the most powerful "
      "group {:.1f} %; worst {:.2f} % above\n",
      instances, 100.0 * within / instances, 100.0 * all / instances, 100.0 * alone / instances,
      100 * Quantile(above, 1));
}

void Exact(int instances, uint64_t seed) {
  std::vector<double> above, ring;
  for (int i = 0; i < instances; ++i) {
    base::Rng rng(base::Mix64(seed + 1000 + static_cast<uint64_t>(i)));
    const DeviceProblem problem =
        ProblemOf(WithSlowLinks(rng, RandomClusterRequest(rng, 3 + static_cast<int>(rng.Below(7))), 0.5));
    const double bytes = problem.WeightBytes(0, problem.layers());
    std::vector<int> devices;
    for (int d = 0; d < problem.devices(); ++d) devices.push_back(d);
    const double exact = ExactArrangement(problem, devices, bytes).seconds;
    above.push_back(Improved(problem, ArrangeBySearch(problem, devices, bytes), bytes).seconds / exact - 1);
    ring.push_back(OneRing(problem, devices, bytes).seconds / exact - 1);
  }
  fmt::print(
      "exact: {} instances of 3 to 9 devices, the search is above the exact allreduce by: median {:.2f} %, 95th "
      "percentile {:.2f} %, worst {:.2f} %; one ring: median {:.1f} %\n",
      instances, 100 * Quantile(above, 0.5), 100 * Quantile(above, 0.95), 100 * Quantile(above, 1),
      100 * Quantile(ring, 0.5));
}

void Ring(int instances, uint64_t seed) {
  const base::SystemClock clock;
  for (const int devices : {8, 16, 32, 64, 128, 256, 512, 1024}) {
    std::vector<double> ratio, step, seconds, random;
    for (int i = 0; i < instances; ++i) {
      base::Rng rng(base::Mix64(seed + 2000 + static_cast<uint64_t>(1000 * devices + i)));
      const DeviceProblem problem = ProblemOf(WithSlowLinks(rng, RandomClusterRequest(rng, devices), 0.3));
      const double bytes = problem.WeightBytes(0, problem.layers());
      std::vector<int> all;
      for (int d = 0; d < devices; ++d) all.push_back(d);
      const Arrangement flat = OneRing(problem, all, bytes);
      const base::SteadyTime begin = clock.Steady();
      const Budget limits(clock, base::SteadyTime::max(), {});
      const auto solution = MakeHierarchyPlanner()->Solve(problem, 1, limits);
      seconds.push_back(base::ToSeconds(clock.Steady() - begin));
      const Arrangement best = Arrange(problem, all, bytes, Formation::kBest, rng);
      ratio.push_back(best.seconds / flat.seconds);
      step.push_back(solution->figures.seconds / Simulated(problem, flat));
      double drawn = kForever;
      for (int draw = 0; draw < 20; ++draw) {
        drawn = std::min(drawn, Arrange(problem, all, bytes, Formation::kRandom, rng).seconds);
      }
      random.push_back(best.seconds / drawn);
    }
    fmt::print(
        "ring: {:4} devices: allreduce {:.3f} of one ring's (worst {:.3f}), {:.3f} of the best of 20 random "
        "groupings (worst {:.3f}); step {:.3f} (worst {:.3f}); planned in {:.2f} s\n",
        devices, Quantile(ratio, 0.5), Quantile(ratio, 1), Quantile(random, 0.5), Quantile(random, 1),
        Quantile(step, 0.5), Quantile(step, 1), Quantile(seconds, 1));
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace medley::reproductions::thesis

int main(int argc, char** argv) {
  CLI::App app{"The planner hierarchy against exact searches and dumb alternatives"};
  int instances = 0;
  uint64_t seed = 1;
  std::vector<std::string> parts = {"groups", "exact", "ring"};
  app.add_option("parts", parts, "groups, exact, ring");
  app.add_option("--instances", instances, "0: 1,000 for groups, 200 for exact, 5 for each size of ring");
  app.add_option("--seed", seed);
  CLI11_PARSE(app, argc, argv);
  for (const std::string& part : parts) {
    const auto count = [&](int usual) { return instances > 0 ? instances : usual; };
    if (part == "groups") medley::reproductions::thesis::Groups(count(1000), seed);
    if (part == "exact") medley::reproductions::thesis::Exact(count(200), seed);
    if (part == "ring") medley::reproductions::thesis::Ring(count(5), seed);
  }
  return 0;
}
