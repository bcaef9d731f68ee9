// Measures planning time: plan_bench --benchmark_filter=Exact
#include <benchmark/benchmark.h>

#include "common/base/clock.h"
#include "scheduler-service/cost/problem.h"
#include "scheduler-service/planner/plan.h"
#include "scheduler-service/planner/planners.h"
#include "tests/unit/scheduler-service/planner/random_request.h"

namespace medley::sched {
namespace {

// The first seeds whose request has exactly the given numbers of layers and types.
model::PlanRequest RequestOf(int layers, int types, int number) {
  for (uint64_t seed = 1;; ++seed) {
    model::PlanRequest request = RandomRequest(seed, {.most_layers = layers, .most_types = types, .most_limit = 32});
    if (static_cast<int>(request.model.layers.size()) != layers) continue;
    if (static_cast<int>(request.resources.size()) != types || number-- > 0) continue;
    request.resources[0].limit = 480;
    for (size_t t = 1; t < request.resources.size(); ++t) request.resources[t].limit = 32;
    return request;
  }
}

// One iteration plans 8 requests; the reported time is that of one.
void Plan(benchmark::State& state, const StagePlanner& planner) {
  const base::SystemClock clock;
  std::vector<Problem> problems;
  for (int i = 0; i < 8; ++i) {
    problems.push_back(
        *Problem::Compile(RequestOf(static_cast<int>(state.range(0)), static_cast<int>(state.range(1)), i)));
  }
  size_t next = 0;
  for (auto _ : state) {
    const Problem& problem = problems[next++ % problems.size()];
    auto solution = planner.SolveStages(problem, 1, Budget(clock, base::SteadyTime::max(), {}));
    benchmark::DoNotOptimize(solution);
  }
}

void Exact(benchmark::State& state) { Plan(state, *MakeExact()); }
void Greedy(benchmark::State& state) { Plan(state, *MakeGreedy()); }
void BruteForce(benchmark::State& state) { Plan(state, *MakeBruteForce()); }
BENCHMARK(Exact)->Args({16, 2})->Args({16, 4})->Args({32, 4})->Args({64, 4})->Unit(benchmark::kMillisecond);
BENCHMARK(Greedy)->Args({16, 2})->Args({16, 4})->Unit(benchmark::kMillisecond);
BENCHMARK(BruteForce)->Args({8, 2})->Args({8, 4})->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace medley::sched
