// Properties of simulations of random plans.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <map>

#include "common/base/rng.h"
#include "common/base/testing/status_matchers.h"
#include "common/program/compile.h"
#include "common/program/samples.h"
#include "scheduler-service/simulate/program_bound.h"
#include "scheduler-service/simulate/simulate.h"
#include "tests/unit/common/program/sample_models.h"

namespace medley::sched {
namespace {

using base::IsOk;
using program::Program;

int Draw(base::Rng& rng, int below) { return static_cast<int>(rng.Below(static_cast<uint64_t>(below))); }

model::Model RandomModel(base::Rng& rng, bool chain) {
  model::Model model{"random", {}};
  const int layers = 2 + Draw(rng, 7);
  for (int i = 0; i < layers; ++i) {
    std::vector<int> inputs;
    if (!chain && i > 0) inputs = {i - 1 - Draw(rng, std::min(i, 3))};
    if (!chain && i > 0 && Draw(rng, 3) == 0) inputs.push_back(i - 1);
    model.layers.push_back(program::Dense("l" + std::to_string(i), Draw(rng, 4) == 0 ? 0 : 400, inputs));
  }
  return model;
}

// Placements of neighbouring operations on random devices, some of them on the same machine.
model::ExecutionPlan RandomPlan(base::Rng& rng, const model::Model& model, model::ScheduleKind kind) {
  model::ExecutionPlan plan;
  const int devices = 1 + Draw(rng, 6);
  for (int d = 0; d < devices; ++d) {
    plan.devices.push_back(
        {"d" + std::to_string(d), "p", Draw(rng, 2) == 0 ? "" : "m" + std::to_string(Draw(rng, 3)), ""});
  }
  int first = 0, next_device = 0;
  const int layers = static_cast<int>(model.layers.size());
  while (first < layers && next_device < devices) {
    int end = first + 1 + Draw(rng, layers - first);
    const int replicas = 1 + Draw(rng, std::min(3, devices - next_device));
    if (next_device + replicas == devices) end = layers;
    model::Placement placement;
    placement.operations = {{first, end}};
    for (int r = 0; r < replicas; ++r) {
      placement.replicas.push_back({plan.devices[static_cast<size_t>(next_device++)].id, 1.0 / replicas});
    }
    if (replicas > 1) placement.sync = program::Allreduce();
    plan.placements.push_back(std::move(placement));
    first = end;
  }
  plan.devices.resize(static_cast<size_t>(next_device));
  plan.schedule = {kind, 1 + Draw(rng, 4)};
  plan.schedule.bucket_bytes = Draw(rng, 2) == 0 ? 0 : 400;
  return plan;
}

Durations RandomDurations(base::Rng& rng, const Program& program) {
  Durations durations = NoTime(program);
  const auto some = [&] { return static_cast<double>(1 + Draw(rng, 8)) / 4; };
  for (auto& block : durations.passes) {
    for (Durations::Passes& passes : block) passes = {{some(), some()}, {some(), some()}, some()};
  }
  for (double& seconds : durations.reductions) seconds = some();
  durations.links[0] = {some(), Draw(rng, 3) == 0 ? 0 : 100 * some()};
  durations.local = {some() / 8, 1000};
  for (double& rate : durations.card_bytes_per_second) rate = Draw(rng, 2) == 0 ? 0 : 100 * some();
  return durations;
}

// Seconds of the longest path of passes through a step, without messages.
double CriticalPath(const Program& program, const Durations& durations, int samples) {
  const program::Binding binding(program, samples);
  std::vector<double> end(program.instructions.size(), 0);
  double longest = 0;
  // Needs of one step may be made later in the order (asynchronous): repeat until nothing changes.
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 0; i < program.instructions.size(); ++i) {
      const program::Instruction& instruction = program.instructions[i];
      double start = 0;
      for (const program::Dependency& needs : program.DependenciesOf(instruction)) {
        if (needs.steps_back == 0) start = std::max(start, end[static_cast<size_t>(needs.instruction)]);
      }
      double own = 0;
      if (instruction.kind == program::Kind::kForward || instruction.kind == program::Kind::kBackward) {
        const auto b = static_cast<size_t>(instruction.block);
        const int count = binding.Replica(program.blocks[b].layout, instruction.replica, instruction.micro).count;
        const Durations::Passes& passes = durations.passes[b][static_cast<size_t>(instruction.replica)];
        own = instruction.kind == program::Kind::kForward ? passes.forward.At(count) : passes.backward.At(count);
      }
      if (start + own > end[i] + 1e-12) {
        end[i] = start + own;
        changed = true;
      }
      longest = std::max(longest, end[i]);
    }
  }
  return longest;
}

TEST(RandomPlansTest, TimeHasLowerBoundsAndNamesDoNotMatter) {
  base::Rng rng(14);
  int simulated = 0;
  for (int round = 0; round < 300; ++round) {
    const auto kind = std::array{model::ScheduleKind::kSync1F1B, model::ScheduleKind::kGpipe,
                                 model::ScheduleKind::kAsync1F1B}[static_cast<size_t>(Draw(rng, 3))];
    const model::Model model = RandomModel(rng, kind == model::ScheduleKind::kAsync1F1B);
    const model::ExecutionPlan plan = RandomPlan(rng, model, kind);
    const auto program = program::Compile(plan, model);
    if (!program.ok()) continue;
    ++simulated;
    const Durations durations = RandomDurations(rng, *program);
    const int samples = 1 + Draw(rng, 12), steps = 1 + Draw(rng, 6);
    const auto result = Simulate(*program, durations, {.samples = samples, .steps = steps, .max_spans = 1'000'000});
    ASSERT_THAT(result, IsOk()) << round;
    EXPECT_EQ(result->instructions, static_cast<int64_t>(program->instructions.size()) * steps);
    EXPECT_GE(result->total_seconds, CriticalPath(*program, durations, samples) - 1e-9) << round;
    for (const double busy : result->busy) EXPECT_GE(result->total_seconds, busy - 1e-9) << round;
    EXPECT_TRUE(std::is_sorted(result->step_end.begin(), result->step_end.end())) << round;

    // No two instructions of a list at a time, and none before what it needs.
    std::map<int, double> list_end;
    for (const Span& span : result->spans) {
      EXPECT_GE(span.start, list_end[span.list] - 1e-9);
      list_end[span.list] = span.end;
    }

    Program renamed = *program;
    for (program::Device& device : renamed.devices) device.id = "renamed-" + device.id;
    const auto again = Simulate(renamed, durations, {.samples = samples, .steps = steps});
    ASSERT_THAT(again, IsOk());
    EXPECT_EQ(again->step_end, result->step_end);
  }
  EXPECT_GE(simulated, 280);
}

TEST(RandomPlansTest, NoStepIsShorterThanItsBound) {
  base::Rng rng(15);
  int tight = 0, simulated = 0;
  for (int round = 0; round < 300; ++round) {
    const auto kind = std::array{model::ScheduleKind::kSync1F1B, model::ScheduleKind::kGpipe,
                                 model::ScheduleKind::kAsync1F1B}[static_cast<size_t>(Draw(rng, 3))];
    const model::Model model = RandomModel(rng, kind == model::ScheduleKind::kAsync1F1B);
    const auto program = program::Compile(RandomPlan(rng, model, kind), model);
    if (!program.ok()) continue;
    ++simulated;
    const Durations durations = RandomDurations(rng, *program);
    const int samples = 1 + Draw(rng, 12);
    const auto result = Simulate(*program, durations, {.samples = samples, .steps = 130});
    const auto bound = BoundOfProgram(*program, durations, samples);
    ASSERT_THAT(result, IsOk()) << round;
    ASSERT_THAT(bound, IsOk()) << round;
    EXPECT_GT(bound->path, 0) << round;
    // Steps of the middle: the first may end late and the last early.
    const double seconds = (result->step_end[120] - result->step_end[60]) / 60;
    EXPECT_LE(bound->seconds(), seconds * (1 + 1e-9)) << round;
    tight += bound->seconds() >= seconds * (1 - 1e-9) ? 1 : 0;
  }
  EXPECT_GE(simulated, 280);
  EXPECT_GE(tight, simulated / 5) << "bounds that nothing reaches say little";
}

}  // namespace
}  // namespace medley::sched
