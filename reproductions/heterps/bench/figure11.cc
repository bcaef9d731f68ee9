#include "reproductions/heterps/bench/figure11.h"

#include <cmath>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/model/plan_result.h"
#include "common/model/planning.h"
#include "scheduler-service/planner/plan.h"
#include "scheduler-service/profile/analytic.h"
#include "tests/unit/worker/zoo/zoo_jobs.h"
#include "worker/model/graph.h"

namespace medley::reproductions::heterps {
namespace {

using bench::Json;

constexpr int kBatch = 4096;
constexpr int kMicroBatches = 4;
constexpr double kSamples = 45'000'000;  // of an epoch, as in examples/plan

struct Pools {
  std::string name;
  std::vector<model::Resource> resources;
  std::string server;
};

model::Resource PoolOf(const std::string& name, model::ResourceClass cls, double price, int limit) {
  model::Resource resource;
  resource.name = resource.hardware = name;
  resource.cls = cls;
  resource.price_per_unit_hour = price;
  resource.limit = limit;
  return resource;
}

// Prices: of the first set, those of the paper; of the second, ours, per core.
std::vector<Pools> AllPools() {
  using enum model::ResourceClass;
  return {
      {"480 cpu, 32 v100", {PoolOf("cpu", kCpu, 0.04, 480), PoolOf("v100", kGpu, 2.42, 32)}, "cpu"},
      {"24 cpu, 4 cpu-16, 8 cpu-emerald-rapids",
       {PoolOf("cpu", kCpu, 0.04, 24), PoolOf("cpu-16", kCpu, 0.70, 4), PoolOf("cpu-emerald-rapids", kCpu, 0.07, 8)},
       "cpu"}};
}

class Bench {
 public:
  Bench(const bench::PlannerBenchOptions& options, const sched::Registry& registry)
      : options_(options), registry_(registry) {}

  absl::StatusOr<model::PlanRequest> Request(const std::string& model, const Pools& pools,
                                             const sched::HardwareCatalog& hardware) const {
    MEDLEY_ASSIGN_OR_RETURN(const worker::Graph graph, worker::BuildGraph(worker::testing::ZooJob(model)));
    model::PlanRequest request;
    request.model = graph.ToModel();
    request.training.profile_batch_size = kBatch;
    request.training.samples_per_epoch = kSamples;
    request.training.epochs = 1;
    request.training.micro_batches = kMicroBatches;
    request.resources = pools.resources;
    request.server_type = pools.server;
    request.planner.time_budget_seconds = options_.limit_seconds;
    MEDLEY_RETURN_IF_ERROR(sched::AddAnalyticProfiles(request, hardware));
    return request;
  }

  absl::StatusOr<model::PlanResult> Plan(model::PlanRequest request, const std::string& planner, double goal,
                                         uint64_t seed) const {
    request.planner.name = planner;
    request.planner.seed = seed;
    request.constraints.min_throughput = goal;
    return sched::MakePlan(request, {}, registry_, clock_, {});
  }

  // The largest throughput for which `exact` finds a plan on these resources, up to a thousandth.
  absl::StatusOr<double> Most(const model::PlanRequest& request) const {
    double low = 0, high = 1e10;
    while (high > low * 1.001 && high > 1) {
      const double middle = low == 0 ? std::sqrt(high) : (low + high) / 2;
      MEDLEY_ASSIGN_OR_RETURN(const model::PlanResult result, Plan(request, "exact", middle, 1));
      (result.plan ? low : high) = middle;
    }
    return low;
  }

  absl::StatusOr<Json> Row(const model::PlanRequest& request, const std::string& planner, double goal) const {
    Json row = {{"planner", planner}, {"goal", goal}};
    const absl::StatusOr<model::PlanResult> result = Plan(request, planner, goal, 1);
    if (result.status().code() == absl::StatusCode::kInvalidArgument) {  // it plans CPUs together with GPUs only
      row["refused"] = base::Message(result.status());
      return row;
    }
    MEDLEY_RETURN_IF_ERROR(result.status());
    if (result->plan) {
      row["usd"] = result->plan->cost_usd;
      row["stages"] = result->plan->stages.size();
      row["throughput"] = result->plan->throughput;
    }
    if (result->simulated) {
      row["simulatedUsd"] = result->simulated->cost_usd;
      row["simulatedThroughput"] = result->simulated->throughput;
    }
    return row;
  }

 private:
  const bench::PlannerBenchOptions options_;
  const sched::Registry& registry_;
  const base::SystemClock clock_;
};

}  // namespace

absl::Status Figure11(const bench::PlannerBenchOptions& options, const sched::Registry& registry, Json& out) {
  const auto hardware = sched::HardwareCatalog::Builtin();
  MEDLEY_RETURN_IF_ERROR(hardware.status());
  const Bench bench(options, registry);
  for (const Pools& pools : AllPools()) {
    for (const char* model : {"matchnet", "ctrdnn-16", "2emb", "nce", "dlrm", "deepfm", "dcn-v2", "wide-and-deep"}) {
      MEDLEY_ASSIGN_OR_RETURN(const model::PlanRequest request, bench.Request(model, pools, *hardware));
      MEDLEY_ASSIGN_OR_RETURN(const double all, bench.Most(request));
      for (const double part : {0.3, 0.8}) {
        for (const char* planner :
             {"exact", "rl-lstm", "rl-rnn", "bayesian", "genetic", "greedy", "heuristic", "gpu-only", "cpu-only"}) {
          MEDLEY_ASSIGN_OR_RETURN(Json row, bench.Row(request, planner, part * all));
          row["pools"] = pools.name;
          row["model"] = model;
          row["partOfMost"] = part;
          out.push_back(std::move(row));
        }
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace medley::reproductions::heterps
