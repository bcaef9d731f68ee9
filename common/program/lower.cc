#include "common/program/lower.h"

#include <algorithm>
#include <map>
#include <utility>

#include "common/base/status.h"
#include "common/model/model.h"
#include "common/model/placement.h"
#include "common/program/samples.h"

namespace medley::program {
namespace {

using model::ExecutionPlan;
using model::Sync;
using model::SyncKind;

// Adds `value` unless an equal one exists; returns its index.
template <typename T>
int IndexOf(std::vector<T>& all, const T& value) {
  const auto found = std::find(all.begin(), all.end(), value);
  if (found != all.end()) return static_cast<int>(found - all.begin());
  all.push_back(value);
  return static_cast<int>(all.size()) - 1;
}

std::string OperationName(const model::Model& model, int operation) {
  const std::string& name = model.layers[static_cast<size_t>(operation)].name;
  return name.empty() ? fmt::format("operation {}", operation) : fmt::format("operation '{}'", name);
}

absl::Status ReadGraph(const model::Model& model, std::vector<Operation>& operations) {
  operations.resize(model.layers.size());
  for (int i = 0; i < static_cast<int>(operations.size()); ++i) {
    const model::Layer& layer = model.layers[static_cast<size_t>(i)];
    Operation& operation = operations[static_cast<size_t>(i)];
    operation.table = layer.sparse;
    operation.dense_bytes = layer.sparse ? 0 : static_cast<int64_t>(layer.weight_bytes);
    operation.inputs = layer.inputs;
    if (layer.inputs.empty() && i > 0) operation.inputs = {i - 1};
    if (layer.inputs.empty() && i == 0) operation.inputs = {-1};
    std::sort(operation.inputs.begin(), operation.inputs.end());
    operation.inputs.erase(std::unique(operation.inputs.begin(), operation.inputs.end()), operation.inputs.end());
    for (const int input : operation.inputs) {
      if (input < -1 || input >= i) {
        return base::InvalidArgument("{}: its input {} is not an operation before it", OperationName(model, i), input);
      }
    }
    operation.reads_batch = operation.table || operation.inputs.front() == -1;
    std::erase(operation.inputs, -1);
    for (const int input : operation.inputs) operations[static_cast<size_t>(input)].consumers.push_back(i);
  }
  for (Operation& operation : operations) {
    if (operation.consumers.empty()) operation.reads_batch = true;  // labels
  }
  return absl::OkStatus();
}

void LowerStages(const ExecutionPlan& plan, Lowered& out) {
  std::map<std::string, int> units;  // by pool
  for (const model::Stage& stage : plan.stages) {
    Layout layout;
    std::vector<double> shares;
    for (const model::Group& group : stage.groups) {
      for (int u = 0; u < group.units; ++u) {
        layout.devices.push_back(static_cast<int>(out.devices.size()));
        shares.push_back(group.share / group.units);
        out.devices.push_back({model::StageDeviceId(group.pool, units[group.pool]++), group.pool, "", "", false});
      }
    }
    layout.cuts = Cuts(shares);
    const int index = static_cast<int>(out.layouts.size());  // the devices of two stages are different
    out.layouts.push_back(std::move(layout));
    for (const model::OperationRange& range : stage.operations) {
      for (int i = range.first; i < range.end; ++i) out.operations[static_cast<size_t>(i)].layout = index;
    }
    const int none = IndexOf(out.syncs, Sync{});
    for (const model::OperationRange& range : stage.operations) {
      for (int i = range.first; i < range.end; ++i) out.operations[static_cast<size_t>(i)].sync = none;
    }
    for (const model::OperationSync& sync : stage.syncs) {
      const int lowered = IndexOf(out.syncs, sync.sync.kind == SyncKind::kAllreduce ? sync.sync : Sync{});
      for (const model::OperationRange& range : sync.operations) {
        for (int i = range.first; i < range.end; ++i) out.operations[static_cast<size_t>(i)].sync = lowered;
      }
    }
  }
}

void LowerPlacements(const ExecutionPlan& plan, Lowered& out) {
  std::map<std::string, int> index;
  for (const model::Device& device : plan.devices) {
    index[device.id] = static_cast<int>(out.devices.size());
    out.devices.push_back({device.id, device.pool, device.machine, device.location, false});
  }
  for (const model::Placement& placement : plan.placements) {
    Layout layout;
    std::vector<double> shares;
    for (const model::Replica& replica : placement.replicas) {
      layout.devices.push_back(index.at(replica.device));
      shares.push_back(replica.share);
    }
    layout.cuts = Cuts(shares);
    const int lowered = IndexOf(out.layouts, layout);
    const int sync = IndexOf(out.syncs, placement.sync);
    for (const model::OperationRange& range : placement.operations) {
      for (int i = range.first; i < range.end; ++i) {
        out.operations[static_cast<size_t>(i)].layout = lowered;
        out.operations[static_cast<size_t>(i)].sync = sync;
      }
    }
  }
}

void AddShardsOfTrainers(const ExecutionPlan& plan, Lowered& out) {
  int device = 0, shard = 0;  // trainers are in the order of stages
  for (const model::Stage& stage : plan.stages) {
    for (int u = 0; u < stage.Units(); ++u, ++device) {
      if (!model::PullsRows(stage)) continue;
      const Device host = out.devices[static_cast<size_t>(device)];
      out.devices.push_back({fmt::format("server/{}", shard++), host.pool, host.machine, host.location, true, device});
    }
  }
}

void AddServers(const ExecutionPlan& plan, Lowered& out) {
  out.trainers = static_cast<int>(out.devices.size());
  if (!plan.servers) return;
  if (plan.servers->in_trainers) return AddShardsOfTrainers(plan, out);
  for (int u = 0; u < plan.servers->units; ++u) {
    out.devices.push_back({fmt::format("server/{}", u), plan.servers->pool, "", "", true});
  }
}

void FindSegments(Lowered& out) {
  std::vector<int> segment_of(out.operations.size());
  for (int i = 0; i < static_cast<int>(out.operations.size()); ++i) {
    const int layout = out.operations[static_cast<size_t>(i)].layout;
    if (out.segments.empty() || out.segments.back().layout != layout) out.segments.push_back({{i, i}, layout, 0});
    out.segments.back().operations.end = i + 1;
    segment_of[static_cast<size_t>(i)] = static_cast<int>(out.segments.size()) - 1;
  }
  for (Segment& segment : out.segments) {  // producers come before
    for (int i = segment.operations.first; i < segment.operations.end; ++i) {
      for (const int input : out.operations[static_cast<size_t>(i)].inputs) {
        const Segment& producer = out.segments[static_cast<size_t>(segment_of[static_cast<size_t>(input)])];
        if (&producer != &segment) segment.depth = std::max(segment.depth, producer.depth + 1);
      }
    }
    out.depth = std::max(out.depth, segment.depth + 1);
  }
}

bool Differs(model::SyncMode mode) { return mode != model::SyncMode::kFull; }

bool IsChain(const Lowered& lowered) {
  for (size_t i = 0; i < lowered.segments.size(); ++i) {
    if (lowered.segments[i].depth != static_cast<int>(i)) return false;
  }
  for (size_t i = 0; i < lowered.operations.size(); ++i) {
    for (const int input : lowered.operations[i].inputs) {
      const auto depth = [&](int op) {
        const auto at = std::find_if(lowered.segments.begin(), lowered.segments.end(),
                                     [&](const Segment& segment) { return segment.operations.Contains(op); });
        return at->depth;
      };
      if (depth(static_cast<int>(i)) - depth(input) > 1) return false;
    }
  }
  return true;
}

// What the generators cannot express: section 8 of the design, "first delivery".
absl::Status CheckCombination(const ExecutionPlan& plan, const model::Model& model, const Lowered& lowered) {
  const bool tables = std::any_of(lowered.operations.begin(), lowered.operations.end(),
                                  [](const Operation& operation) { return operation.table; });
  if (plan.schedule.kind == model::ScheduleKind::kAsync1F1B) {
    if (tables && plan.servers) {
      return base::Unimplemented("schedule.kind: ASYNC_1F1B with embedding tables on parameter servers");
    }
    if (!IsChain(lowered)) {
      return base::Unimplemented("schedule.kind: ASYNC_1F1B needs stages that form a chain");
    }
    if (!plan.order.empty()) return base::Unimplemented("order: only with synchronous schedules");
  }
  for (int i = 0; i < static_cast<int>(lowered.operations.size()); ++i) {
    const Operation& operation = lowered.operations[static_cast<size_t>(i)];
    const Layout& layout = lowered.layouts[static_cast<size_t>(operation.layout)];
    const Sync& sync = lowered.syncs[static_cast<size_t>(operation.sync)];
    if (operation.table && !plan.servers && layout.replicas() > 1) {
      return base::InvalidArgument("{} has embedding rows and {} replicas, so the plan needs parameter servers",
                                   OperationName(model, i), layout.replicas());
    }
    if (operation.dense_bytes == 0 || layout.replicas() == 1) continue;
    if (sync.kind != SyncKind::kAllreduce) {
      return base::InvalidArgument("{} has parameters and {} replicas: the plan must synchronise it by allreduce",
                                   OperationName(model, i), layout.replicas());
    }
    const bool alike = std::ranges::all_of(lowered.operations, [&](const Operation& other) {
      return other.dense_bytes == 0 || other.sync == operation.sync;
    });
    if (Differs(sync.mode) && (lowered.layouts.size() > 1 || plan.servers || !alike)) {
      return base::Unimplemented(
          "{}: replicas that differ (a mode other than FULL) need one placement that holds the whole model, without "
          "parameter servers",
          OperationName(model, i));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Lowered> Lower(const ExecutionPlan& plan, const model::Model& model) {
  MEDLEY_RETURN_IF_ERROR(model::Validate(plan, static_cast<int>(model.layers.size())));
  Lowered out;
  MEDLEY_RETURN_IF_ERROR(ReadGraph(model, out.operations));
  if (plan.stages.empty()) {
    LowerPlacements(plan, out);
  } else {
    LowerStages(plan, out);
  }
  AddServers(plan, out);
  FindSegments(out);
  MEDLEY_RETURN_IF_ERROR(CheckCombination(plan, model, out));
  return out;
}

}  // namespace medley::program
