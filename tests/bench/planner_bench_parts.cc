#include "tests/bench/planner_bench_parts.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <limits>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/model/plan_result.h"
#include "common/model/value_text.h"
#include "scheduler-service/cost/problem.h"
#include "scheduler-service/planner/pareto.h"
#include "scheduler-service/planner/plan.h"
#include "scheduler-service/planning/candidate.h"
#include "tests/bench/many_types.h"
#include "tests/unit/scheduler-service/planner/scale_request.h"

namespace medley::bench {

using sched::Budget;
using sched::Front;
using sched::Problem;
using sched::ScaleOptions;
using sched::ScaleRequest;
using sched::WithTypes;

double ProcessorSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double Quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const double at = q * static_cast<double>(values.size() - 1);
  const size_t below = static_cast<size_t>(at), above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - std::floor(at)) * (values[above] - values[below]);
}

absl::StatusOr<PlannerBench::Timed> PlannerBench::Time(std::string_view planner, const Problem& problem, uint64_t seed,
                                                       double limit) const {
  const base::SteadyTime begin = clock_.Steady();
  const double processor = ProcessorSeconds();
  Timed timed;
  MEDLEY_ASSIGN_OR_RETURN(timed.solution,
                          registry_.Find(planner, sched::Supply::kUnits)
                              ->Solve(problem, seed, Budget(clock_, begin + base::FromSeconds(limit), {})));
  timed.processor = ProcessorSeconds() - processor;
  timed.seconds = base::ToSeconds(clock_.Steady() - begin);
  return timed;
}

absl::StatusOr<model::PlanRequest> PlannerBench::Request(const std::string& name) const {
  MEDLEY_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(options_.root + "/examples/plan/" + name + ".yaml"));
  return model::ParsePlanRequest(text);
}

// Plans distinct requests, each `times` times.
absl::Status PlannerBench::ExactCase(const std::string& name, std::vector<model::PlanRequest> requests, int times,
                                     Json& out) const {
  std::vector<double> seconds, processor;
  int complete = 0, feasible = 0;
  double gap = 0;
  size_t stages = 0;
  for (model::PlanRequest& request : requests) {
    MEDLEY_ASSIGN_OR_RETURN(const Problem problem, Problem::Compile(std::move(request)));
    for (int i = 0; i < times; ++i) {
      MEDLEY_ASSIGN_OR_RETURN(const Timed timed, Time("exact", problem, 1, options_.limit_seconds));
      seconds.push_back(timed.seconds);
      processor.push_back(timed.processor);
      if (i > 0) continue;
      complete += timed.solution.complete ? 1 : 0;
      if (!timed.solution.plan) continue;
      ++feasible;
      stages = std::max(stages, timed.solution.plan->stages.size());
      gap = std::max(gap, 1 - timed.solution.lower_bound / timed.solution.figures.usd);
    }
  }
  out.push_back({{"case", name},
                 {"requests", requests.size()},
                 {"times", times},
                 {"feasible", feasible},
                 {"proven", complete},
                 {"mostGap", gap},
                 {"mostStages", stages},
                 {"seconds", {{"median", Quantile(seconds, 0.5)}, {"p99", Quantile(seconds, 0.99)}}},
                 {"processorSeconds", {{"median", Quantile(processor, 0.5)}, {"p99", Quantile(processor, 0.99)}}}});
  return absl::OkStatus();
}

absl::Status PlannerBench::AnswerCase(const std::string& name, std::vector<model::PlanRequest> requests, int times,
                                      Json& out) const {
  std::vector<double> seconds, processor;
  int complete = 0, feasible = 0, simulated = 0;
  double gap = 0;
  size_t stages = 0;
  for (model::PlanRequest& request : requests) {
    request.training.micro_batches = 4;
    request.planner.time_budget_seconds = options_.limit_seconds;
    for (int i = 0; i < times; ++i) {
      const base::SteadyTime begin = clock_.Steady();
      const double before = ProcessorSeconds();
      MEDLEY_ASSIGN_OR_RETURN(const model::PlanResult result, sched::MakePlan(request, {}, registry_, clock_, {}));
      processor.push_back(ProcessorSeconds() - before);
      seconds.push_back(base::ToSeconds(clock_.Steady() - begin));
      if (i > 0) continue;
      complete += result.complete ? 1 : 0;
      if (!result.plan) continue;
      ++feasible;
      simulated += result.simulated ? 1 : 0;
      stages = std::max(stages, result.plan->stages.size());
      gap = std::max(gap, result.gap.value_or(1));
    }
  }
  out.push_back({{"case", name},
                 {"requests", requests.size()},
                 {"times", times},
                 {"feasible", feasible},
                 {"proven", complete},
                 {"simulated", simulated},
                 {"mostGap", gap},
                 {"mostStages", stages},
                 {"seconds", {{"median", Quantile(seconds, 0.5)}, {"p99", Quantile(seconds, 0.99)}}},
                 {"processorSeconds", {{"median", Quantile(processor, 0.5)}, {"p99", Quantile(processor, 0.99)}}}});
  return absl::OkStatus();
}

absl::Status PlannerBench::Exact(Json& out) const {
  MEDLEY_ASSIGN_OR_RETURN(const model::PlanRequest ctrdnn, Request("ctrdnn-16"));
  std::vector<model::PlanRequest> requests;
  for (int i = 0; i < 20; ++i) {
    requests.push_back(ctrdnn);
    requests.back().constraints.min_throughput *= 0.2 + 0.2 * i;
  }
  MEDLEY_RETURN_IF_ERROR(AnswerCase("ctrdnn-16 x 2 types, answer, 4 micro-batches", requests, 20, out));
  MEDLEY_RETURN_IF_ERROR(ExactCase("ctrdnn-16 x 2 types, minThroughput 0.2 to 4 times", std::move(requests), 50, out));
  std::vector<model::PlanRequest> large;
  for (int seed = 1; seed <= options_.seeds; ++seed) {
    large.push_back(ScaleRequest(static_cast<uint64_t>(seed), {.layers = 20, .types = 64}));
  }
  MEDLEY_RETURN_IF_ERROR(AnswerCase("20 layers x 64 types, answer, 4 micro-batches", large, 3, out));
  for (size_t i = 0; i < large.size(); ++i) sched::AddUnlikeLinks(i + 1, large[i]);
  MEDLEY_RETURN_IF_ERROR(
      AnswerCase("20 layers x 64 types, answer, 4 micro-batches, unlike links", std::move(large), 3, out));
  const auto scale = [&](const std::string& name, const ScaleOptions& options) {
    std::vector<model::PlanRequest> of_seeds;
    for (int seed = 1; seed <= options_.seeds; ++seed) {
      of_seeds.push_back(ScaleRequest(static_cast<uint64_t>(seed), options));
    }
    return ExactCase(name, std::move(of_seeds), 3, out);
  };
  MEDLEY_RETURN_IF_ERROR(scale("20 layers x 64 types", {.layers = 20, .types = 64}));
  MEDLEY_RETURN_IF_ERROR(scale("20 x 64, nearly equal types, 500,000 samples/s",
                               {.layers = 20, .types = 64, .spread = 0.02, .noise = 0.01, .min_throughput = 5e5}));
  MEDLEY_RETURN_IF_ERROR(scale("20 x 64, many stages, quotas of 24 and 2, 300,000 samples/s", {.layers = 20,
                                                                                               .types = 64,
                                                                                               .noise = 1,
                                                                                               .cpu_limit = 24,
                                                                                               .gpu_limit = 2,
                                                                                               .min_throughput = 3e5,
                                                                                               .lookup_every = 2}));
  MEDLEY_RETURN_IF_ERROR(scale("16 x 4, limits of 10,000, all work divides",
                               {.layers = 16, .types = 4, .cpu_limit = 10000, .gpu_limit = 10000, .divides = true}));
  MEDLEY_RETURN_IF_ERROR(scale("64 x 8, many stages, 1,500,000 samples/s",
                               {.layers = 64, .types = 8, .noise = 1, .min_throughput = 1.5e6, .lookup_every = 2}));
  return scale("64 x 64, many stages", {.layers = 64, .types = 64, .noise = 1, .lookup_every = 2});
}

absl::Status PlannerBench::Pareto(Json& out) const {
  for (const char* name : {"ctrdnn-16", "matchnet-16", "2emb-10", "nce-5"}) {
    MEDLEY_ASSIGN_OR_RETURN(model::PlanRequest request, Request(name));
    MEDLEY_ASSIGN_OR_RETURN(const Problem problem, Problem::Compile(std::move(request)));
    const double begin = ProcessorSeconds();
    const Front front =
        ExactFront(problem, Budget(clock_, clock_.Steady() + base::FromSeconds(options_.limit_seconds), {}));
    out.push_back({{"model", name},
                   {"points", front.plans.size()},
                   {"complete", front.complete},
                   {"processorSeconds", ProcessorSeconds() - begin}});
  }
  return absl::OkStatus();
}

absl::Status PlannerBench::Planners(const std::vector<std::string>& planners, const std::vector<std::string>& random,
                                    Json& out) const {
  for (const char* name : {"matchnet-16", "ctrdnn-16", "2emb-10", "nce-5"}) {
    MEDLEY_ASSIGN_OR_RETURN(const model::PlanRequest request, Request(name));
    std::vector<int> counts = {2, 4, 8};
    if (std::string_view(name) == "matchnet-16") counts = {2, 4, 8, 16, 32, 64};
    for (const int types : counts)
      MEDLEY_RETURN_IF_ERROR(OfModel(name, WithTypes(request, types, 1), planners, random, out));
  }
  return absl::OkStatus();
}

absl::Status PlannerBench::OfModel(const std::string& name, model::PlanRequest request,
                                   const std::vector<std::string>& planners, const std::vector<std::string>& random,
                                   Json& out) const {
  MEDLEY_ASSIGN_OR_RETURN(const Problem problem, Problem::Compile(std::move(request)));
  MEDLEY_ASSIGN_OR_RETURN(const Timed exact, Time("exact", problem, 1, options_.limit_seconds));
  if (!exact.solution.plan) return base::FailedPrecondition("{} has no plan", name);
  const double optimum = exact.solution.figures.usd;
  for (const std::string& planner : planners) {
    const bool draws = std::ranges::find(random, planner) != random.end();
    std::vector<double> above, seconds, processor;
    double slowest = std::numeric_limits<double>::infinity();
    int without = 0;
    for (int seed = 1; seed <= (draws ? options_.seeds : 1); ++seed) {
      MEDLEY_ASSIGN_OR_RETURN(const Timed timed,
                              Time(planner, problem, static_cast<uint64_t>(seed), options_.limit_seconds));
      seconds.push_back(timed.seconds);
      processor.push_back(timed.processor);
      if (timed.solution.plan) {
        above.push_back(timed.solution.figures.usd / optimum - 1);
        slowest = std::min(slowest, timed.solution.figures.throughput);
      } else {
        ++without;
      }
    }
    Json row = {{"model", name},
                {"types", problem.types()},
                {"planner", planner},
                {"runs", seconds.size()},
                {"withoutPlan", without},
                {"seconds", Quantile(seconds, 0.5)},
                {"processorSeconds", Quantile(processor, 0.5)}};
    if (!above.empty()) {
      row["above"] = {{"median", Quantile(above, 0.5)}, {"most", Quantile(above, 1)}};
      row["throughputOverLimit"] = slowest / problem.request().constraints.min_throughput;
    }
    out.push_back(row);
    std::fprintf(stderr, "planner_bench: %s\n", row.dump().c_str());
  }
  return absl::OkStatus();
}

}  // namespace medley::bench
