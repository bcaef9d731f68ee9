#include "common/program/compile.h"

#include <algorithm>
#include <set>
#include <utility>

#include "common/base/status.h"
#include "common/model/execution_plan.h"
#include "common/model/model.h"
#include "common/model/order_entry.h"
#include "common/program/blocks.h"
#include "common/program/check.h"
#include "common/program/link.h"
#include "common/program/lower.h"
#include "common/program/order.h"
#include "common/program/shared.h"

namespace medley::program {
namespace {

using model::ScheduleKind;

Form FormOf(const model::ExecutionPlan& plan) {
  if (plan.schedule.kind == ScheduleKind::kAsync1F1B) return Form::kAsync1F1B;
  const auto is_pass = [](const model::OrderEntry& entry) { return entry.phase != model::Phase::kReduce; };
  if (std::ranges::any_of(plan.order, is_pass)) return Form::kOrdered;
  return plan.schedule.kind == ScheduleKind::kGpipe ? Form::kGPipe : Form::kSync1F1B;
}

Order PassesOf(Form form, const model::ExecutionPlan& plan, const Shape& shape) {
  switch (form) {
    case Form::kSync1F1B:
      return Sync1F1B(shape);
    case Form::kGPipe:
      return GPipe(shape);
    case Form::kAsync1F1B:
      return Async1F1B(shape, plan.schedule.max_staleness);
    case Form::kOrdered:
      return Ordered(shape, plan.order);
    case Form::kEvaluate:
      return Evaluate(shape);
  }
  return {};
}

// Errors: Unimplemented for what cannot be updated in the next step.
absl::StatusOr<Order> OrderOf(const Program& program, const model::ExecutionPlan& plan, const model::Model& model,
                              const Shape& shape) {
  Order order = PassesOf(program.form, plan, shape);
  if (!program.Trains()) return order;
  if (program.form != Form::kAsync1F1B) order.reductions = ReductionOrder(shape, plan.order);
  if (!plan.schedule.overlap_next_step || model.clips_gradients || HasShared(model)) return order;
  if (program.form == Form::kAsync1F1B) {
    return base::Unimplemented("plan.schedule.overlapNextStep: ASYNC_1F1B updates a block as soon as it can");
  }
  for (const Block& block : program.blocks) {
    if (block.average >= 0) {
      return base::Unimplemented(
          "plan.schedule.overlapNextStep: replicas that differ are updated at the end of a step");
    }
    if (!block.tables.empty()) {
      return base::Unimplemented("plan.schedule.overlapNextStep: embedding tables are updated at the end of a step");
    }
  }
  order.updates = Updates::kNextStep;
  return order;
}

// Devices as a layout of their own, in which they add; -1 for one device.
int AddGroup(const std::set<int>& devices, model::AllreduceAlgorithm algorithm, Program& program) {
  if (devices.size() < 2) return -1;
  const auto count = static_cast<int>(devices.size());
  Layout layout{.devices = {devices.begin(), devices.end()}, .cuts = {}};
  std::vector<int> members;
  for (int i = 0; i <= count; ++i) {
    layout.cuts.push_back(static_cast<double>(i) / count);
    if (i < count) members.push_back(i);
  }
  program.groups.push_back(
      {.layout = static_cast<int>(program.layouts.size()), .levels = {{{members}, algorithm}}, .root = 0});
  program.layouts.push_back(std::move(layout));
  return static_cast<int>(program.groups.size()) - 1;
}

// The devices with dense parameters add the squares of their gradients.
absl::Status AddNorm(Program& program) {
  if (program.form == Form::kAsync1F1B) {
    return base::Unimplemented(
        "plan.schedule.kind: ASYNC_1F1B does not clip gradients by the norm over all parameters");
  }
  std::set<int> devices;
  for (const Block& block : program.blocks) {
    if (block.average >= 0) {
      return base::Unimplemented("plan.sync.mode: replicas that differ do not clip gradients by their norm");
    }
    if (!block.tables.empty()) {
      return base::Unimplemented("the gradients of embedding tables are not clipped by their norm");
    }
    if (!block.dense) continue;
    const Layout& layout = program.layouts[static_cast<size_t>(block.layout)];
    devices.insert(layout.devices.begin(), layout.devices.end());
  }
  program.clips = true;
  program.norm_group = AddGroup(devices, model::AllreduceAlgorithm::kCentralized, program);
  return absl::OkStatus();
}

absl::StatusOr<Program> CompileAs(Form form, const model::ExecutionPlan& plan, const model::Model& model,
                                  int64_t max_instructions) {
  MEDLEY_ASSIGN_OR_RETURN(const Lowered lowered, Lower(plan, model));
  Program program;
  program.form = form;
  // Without a pipeline, dividing a batch gains nothing.
  program.micro_batches = program.Trains() && lowered.depth > 1 ? plan.schedule.micro_batches : 1;
  program.devices = lowered.devices;
  program.layouts = lowered.layouts;
  for (const model::Sync& sync : lowered.syncs) {
    if (sync.kind == model::SyncKind::kAllreduce) program.sync = sync;
  }
  MEDLEY_RETURN_IF_ERROR(MakeBlocks(plan, model, lowered, max_instructions, program));
  const Shape shape{&lowered, &program.blocks, program.micro_batches};
  MEDLEY_ASSIGN_OR_RETURN(const Order order, OrderOf(program, plan, model, shape));
  for (size_t b = 0; b < program.blocks.size(); ++b) program.blocks[b].lag = order.lag[b];
  program.lag = program.Trains() ? *std::max_element(order.lag.begin(), order.lag.end()) : 1;
  program.open_steps = program.lag + 1;
  if (program.Trains()) MEDLEY_RETURN_IF_ERROR(AddShared(model, program));
  for (Shared& shared : program.shared) {
    std::set<int> devices;
    for (const int block : shared.blocks) {
      const auto& of = program.layouts[static_cast<size_t>(program.blocks[static_cast<size_t>(block)].layout)].devices;
      devices.insert(of.begin(), of.end());
    }
    shared.group = AddGroup(devices, model::AllreduceAlgorithm::kRing, program);
  }
  if (model.clips_gradients && program.Trains()) MEDLEY_RETURN_IF_ERROR(AddNorm(program));
  MEDLEY_RETURN_IF_ERROR(Link(lowered, order, max_instructions, program));
  MEDLEY_RETURN_IF_ERROR(Check(program));
  return program;
}

}  // namespace

absl::StatusOr<Program> Compile(const model::ExecutionPlan& plan, const model::Model& model, int64_t max_instructions) {
  return CompileAs(FormOf(plan), plan, model, max_instructions);
}

absl::StatusOr<Program> CompileEvaluation(const model::ExecutionPlan& plan, const model::Model& model) {
  return CompileAs(Form::kEvaluate, plan, model, kMaxInstructions);
}

}  // namespace medley::program
