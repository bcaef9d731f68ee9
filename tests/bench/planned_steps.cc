#include "tests/bench/planned_steps.h"

#include <absl/strings/str_split.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <list>
#include <nlohmann/json.hpp>

#include "cli/planner_program.h"
#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/model/convert.h"
#include "common/model/plan_result.h"
#include "common/model/planning.h"
#include "common/model/profile.h"
#include "operator/records/plan_request.h"
#include "operator/records/profile_store.h"
#include "scheduler-service/planner/builtin.h"
#include "scheduler-service/planner/plan.h"

namespace medley::bench {
namespace {

constexpr base::seconds kProfilerLimit{600};  // of a large model under a small quota
constexpr base::seconds kPatience{3600};      // with a planner of the program medley-planner

}  // namespace

absl::StatusOr<model::PlanRequest> AskAsOperator(const model::Profile& profile, const StepTimeQuestion& question) {
  const std::vector<std::string> parts = absl::StrSplit(question.planner, '/');
  const bool asynchronous = parts.size() > 1 && parts[1] == "async";
  const nlohmann::json job = {
      {"metadata", {{"name", "bench"}}},
      {"spec",
       {{"model", {{"name", "mlp"}}},
        {"data", nlohmann::json::object()},
        {"training", {{"batchSize", question.batch}, {"microBatches", question.micro_batches}}},
        {"objective", {{"fastest", true}}},
        {"planner",
         {{"name", parts[0]}, {"parallelism", {{"schedule", asynchronous ? "ASYNC_1F1B" : "SYNC_1F1B"}}}}}}}};
  MEDLEY_ASSIGN_OR_RETURN(const ops::TrainingJob training, ops::TrainingJob::FromObject(kube::Object(job)));
  std::list<ops::ResourcePool> pools;
  std::vector<ops::PoolOffer> offers;
  for (const auto& [name, units] : question.pools) {
    pools.emplace_back().name = name;
    offers.push_back({&pools.back(), units});
  }
  return ops::BuildPlanRequest(training, profile, offers, {});
}

absl::StatusOr<model::ExecutionPlan> PlanSteps(const model::PlanRequest& request) {
  const sched::Registry registry = sched::BuiltinPlanners();
  const base::SystemClock clock;
  model::PlanRequest patient = request;  // for a planner that learns
  patient.planner.time_budget_seconds = kPatience.count();
  absl::StatusOr<model::PlanResult> result = registry.Find(request.planner.name, sched::Supply::kDevices) != nullptr
                                                 ? sched::MakePlan(request, {}, registry, clock, {})
                                                 : cli::AnswerOfPlannerProgram(cli::OwnFolder(), patient);
  MEDLEY_RETURN_IF_ERROR(result.status());
  if (!result->execution_plan) return base::FailedPrecondition("{}: no plan", request.planner.name);
  return *std::move(result->execution_plan);
}

std::string PlacementsText(const model::ExecutionPlan& plan) {
  std::string text;
  for (const model::Placement& placement : plan.placements) {
    for (const model::OperationRange& range : placement.operations)
      text += fmt::format(" {}-{}", range.first, range.end - 1);
    for (const model::Replica& replica : placement.replicas)
      text += fmt::format(" {}*{:.2f}", replica.device, replica.share);
    text += ";";
  }
  return text;
}

worker::JobShape ShapeOf(const model::ExecutionPlan& plan) {
  worker::JobShape shape;
  model::ToProto(plan, shape.planned);
  return shape;
}

absl::StatusOr<model::Profile> MeasureProfiles(worker::JobHarness& job, const std::vector<std::string>& pools) {
  std::vector<model::Profile> profiles;
  for (const std::string& pool : pools) {
    MEDLEY_ASSIGN_OR_RETURN(const std::string log, job.RunProfiler(pool, kProfilerLimit));
    MEDLEY_ASSIGN_OR_RETURN(const std::string json, ops::ProfileJsonInLog(log));
    MEDLEY_ASSIGN_OR_RETURN(profiles.emplace_back(), ops::ParseProfile(json, pool));
  }
  return ops::MergeProfiles(profiles);
}

absl::StatusOr<double> MeasureSteps(worker::JobHarness& job, const worker::JobShape& shape, int warm_up, int steps,
                                    base::seconds patience) {
  const base::SystemClock clock;
  job.StartCoordinator();
  job.Apply(shape, "bench");
  const auto at = [&](int64_t step, int most) {
    return job
        .WaitFor([step](const job::v1::Observation& o) { return o.step() >= step; },
                 base::seconds(60) + most * patience)
        .step();
  };
  const int64_t first = at(warm_up, warm_up);
  const base::SteadyTime begin = clock.Steady();
  const int64_t last = at(first + steps, steps);
  const double seconds = base::ToSeconds(clock.Steady() - begin);
  if (testing::Test::HasFailure() || last <= first) {
    return base::FailedPrecondition("not a steady run: {}", job.AllLogs());
  }
  return seconds / static_cast<double>(last - first);
}

}  // namespace medley::bench
