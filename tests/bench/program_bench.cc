// How long a plan of a large model takes to compile and check, and how many instructions the simulator executes in a
// second of one core.
//
//   program_bench [--operations 4000] [--devices 12] [--seconds 2]
//
// The model has residual connections. Three plans: all operations on all devices; each on one of them; half of them on
// all and half on one, ordered by upward rank. Prints one line of JSON for each.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <random>
#include <string>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/model/execution_plan.h"
#include "common/model/model.h"
#include "common/model/order_entry.h"
#include "common/model/profile.h"
#include "common/program/compile.h"
#include "scheduler-service/simulate/from_profile.h"
#include "scheduler-service/simulate/rank.h"
#include "scheduler-service/simulate/simulate.h"

namespace medley::bench {
namespace {

constexpr uint64_t kSeed = 7;

model::Profile ResidualModel(int operations) {
  model::Profile profile;
  profile.profile_batch_size = 512;
  std::mt19937_64 random(kSeed);
  for (int i = 0; i < operations; ++i) {
    model::Layer layer;
    layer.name = fmt::format("op{}", i);
    layer.weight_bytes = 4.0 * static_cast<double>(1000 + random() % 100'000);
    layer.output_bytes = 4096;
    layer.inputs = {i - 1};
    if (i > 8 && i % 4 == 0) layer.inputs.push_back(i - 5);
    model::LayerProfile times;
    times.resource_type = "pool";
    times.compute_seconds = 1e-4 * static_cast<double>(1 + random() % 20);
    times.compute_parallel = 0.9;
    times.sync_seconds = 1e-4;
    times.transfer_seconds = 1e-5;
    layer.profiles = {times};
    profile.model.layers.push_back(std::move(layer));
  }
  profile.links = {{"pool", "pool", 50e-6, 1.25e9}};
  return profile;
}

enum class Form { kReplicated, kSingle, kMixed };

model::ExecutionPlan MakePlan(int operations, int devices, Form form) {
  model::ExecutionPlan plan;
  plan.schedule = {model::ScheduleKind::kSync1F1B, 1};
  std::vector<model::Placement> placements(static_cast<size_t>(devices) + 1);
  for (int d = 0; d < devices; ++d) {
    plan.devices.push_back({fmt::format("d{}", d), "pool", "", ""});
    placements[static_cast<size_t>(d)].replicas = {{plan.devices.back().id, 1}};
    placements.back().replicas.push_back({plan.devices.back().id, 1.0 / devices});
  }
  for (model::Placement& placement : placements) placement.sync = {.kind = model::SyncKind::kAllreduce};
  std::mt19937_64 random(kSeed);
  for (int i = 0; i < operations; ++i) {
    const bool all = form == Form::kReplicated || (form == Form::kMixed && random() % 2 == 0);
    const size_t where = all ? static_cast<size_t>(devices) : random() % static_cast<size_t>(devices);
    placements[where].operations.push_back({i, i + 1});
  }
  for (model::Placement& placement : placements) {
    if (!placement.operations.empty()) plan.placements.push_back(std::move(placement));
  }
  return plan;
}

int Run(int operations, int devices, double enough) {
  const base::SystemClock clock;
  const model::Profile profile = ResidualModel(operations);
  for (const auto& [form, name] :
       {std::pair(Form::kReplicated, "replicated"), {Form::kSingle, "single"}, {Form::kMixed, "mixed, ranked"}}) {
    model::ExecutionPlan plan = MakePlan(operations, devices, form);
    double rank_seconds = 0;
    if (form == Form::kMixed) {
      const base::SteadyTime begin = clock.Steady();
      auto order = sched::RankOrder(plan, profile, 512);
      MEDLEY_CHECK(order.ok(), base::ToString(order.status()));
      plan.order = *std::move(order);
      rank_seconds = base::ToSeconds(clock.Steady() - begin);
    }
    double compile_seconds = 1e9;
    absl::StatusOr<program::Program> program;
    for (int i = 0; i < 5; ++i) {
      const base::SteadyTime begin = clock.Steady();
      program = program::Compile(plan, profile.model);
      MEDLEY_CHECK(program.ok(), base::ToString(program.status()));
      compile_seconds = std::min(compile_seconds, base::ToSeconds(clock.Steady() - begin));
    }
    const auto durations = sched::DurationsFromProfile(*program, profile, 512);
    MEDLEY_CHECK(durations.ok(), base::ToString(durations.status()));
    int64_t instructions = 0;
    double step = 0;
    const base::SteadyTime begin = clock.Steady();
    do {
      const auto result = sched::Simulate(*program, *durations, {.samples = 512, .steps = 10});
      MEDLEY_CHECK(result.ok(), base::ToString(result.status()));
      instructions += result->instructions;
      step = result->seconds_per_step;
    } while (clock.Steady() - begin < base::FromSeconds(enough));
    const double seconds = base::ToSeconds(clock.Steady() - begin);
    fmt::print(R"({{"plan": "{}", "operations": {}, "devices": {}, "instructions": {}, "rank_ms": {:.1f}, )"
               R"("compile_ms": {:.1f}, "simulated_per_s": {:.0f}, "seconds_per_step": {:.4g}}})"
               "\n",
               name, operations, devices, program->instructions.size(), rank_seconds * 1e3, compile_seconds * 1e3,
               static_cast<double>(instructions) / seconds, step);
  }
  return 0;
}

}  // namespace
}  // namespace medley::bench

int main(int argc, char** argv) {
  int operations = 4000, devices = 12;
  double seconds = 2;
  CLI::App app("Compiles and simulates plans of a large model");
  app.add_option("--operations", operations)->check(CLI::Range(2, 100'000));
  app.add_option("--devices", devices)->check(CLI::Range(1, 1000));
  app.add_option("--seconds", seconds, "of each simulation")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  return medley::bench::Run(operations, devices, seconds);
}
