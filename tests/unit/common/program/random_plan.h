// Random models and plans for them, with what the reference must know of them.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "tests/unit/common/program/sample_models.h"
#include "tests/unit/common/program/toy_model.h"

namespace medley::program::toy {

struct Instance {
  model::Model model;
  model::ExecutionPlan plan;
  Recipe recipe;
};

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  Instance Make() {
    Instance out;
    const bool async = Chance(0.2), differs = !async && Chance(0.15), ordered = !async && Chance(0.25);
    const int ops = 1 + Below(10);
    std::vector<model::Placement> layouts;
    MakeDevices(out.plan, layouts, differs);
    const std::vector<int> stage = async || Chance(0.2) ? Contiguous(ops, layouts) : Scattered(ops, layouts);
    MakeModel(out, ops, stage, async, differs);
    Place(out, stage, layouts);
    model::Schedule& schedule = out.plan.schedule;
    schedule.kind = async         ? model::ScheduleKind::kAsync1F1B
                    : Chance(0.5) ? model::ScheduleKind::kGpipe
                                  : model::ScheduleKind::kSync1F1B;
    schedule.micro_batches = 1 + Below(5);
    schedule.max_staleness = async ? Below(4) : 0;
    schedule.bucket_bytes = Below(3) * 450;
    if (ordered) MakeOrder(out.plan, ops);
    out.recipe.adagrad = Chance(0.5);
    out.recipe.count = 1 + Below(14);
    Describe(out, stage, async, differs);
    if (async || out.recipe.samples.size() > 1) return out;
    if (!ordered && Chance(0.2)) {
      MakeOrder(out.plan, ops);
      std::erase_if(out.plan.order, [](const auto& entry) { return entry.phase != model::Phase::kReduce; });
    }
    const bool tables = std::ranges::any_of(out.recipe.ops, [](const Op& op) { return op.kind == OpKind::kTable; });
    schedule.overlap_next_step = !tables && Chance(0.5);
    return out;
  }

 private:
  int Below(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  bool Chance(double p) { return static_cast<double>(random_() % 10000) < p * 10000; }

  void MakeDevices(model::ExecutionPlan& plan, std::vector<model::Placement>& layouts, bool one) {
    const int devices = 1 + Below(5);
    for (int d = 0; d < devices; ++d) plan.devices.push_back({"d" + std::to_string(d), "p", "", ""});
    const int count = one ? 1 : 1 + Below(4);
    for (int l = 0; l < count; ++l) {
      model::Placement placement;
      std::vector<int> ids;
      for (int d = 0; d < devices; ++d) ids.push_back(d);
      std::shuffle(ids.begin(), ids.end(), random_);
      ids.resize(static_cast<size_t>(one ? devices : 1 + Below(devices)));
      double sum = 0;
      const bool equal = Chance(0.4);
      for (const int d : ids) {
        placement.replicas.push_back(
            {"d" + std::to_string(d), equal ? 1.0 : 1.0 + Below(5) + 0.01 * Below(97)});  // no cut is half a sample
        sum += placement.replicas.back().share;
      }
      for (model::Replica& replica : placement.replicas) replica.share /= sum;
      placement.sync = Allreduce();
      placement.sync.algorithm = model::AllreduceAlgorithm::kAuto;
      if (Chance(0.3)) {
        placement.sync.hierarchy = {Levels(placement)};
      } else if (Chance(0.4)) {
        placement.sync.algorithm = model::AllreduceAlgorithm::kCentralized;
        placement.sync.root = placement.replicas[static_cast<size_t>(Below(static_cast<int>(ids.size())))].device;
      }
      layouts.push_back(std::move(placement));
    }
  }

  model::HierarchyLevel Levels(const model::Placement& placement) {
    model::HierarchyLevel level;
    const int groups = 1 + Below(2);
    level.groups.resize(static_cast<size_t>(groups));
    for (const model::Replica& replica : placement.replicas) {
      level.groups[static_cast<size_t>(Below(groups))].push_back(replica.device);
    }
    std::erase_if(level.groups, [](const auto& group) { return group.empty(); });
    return level;
  }

  // The layout of each operation.
  std::vector<int> Scattered(int ops, const std::vector<model::Placement>& layouts) {
    std::vector<int> out;
    for (int i = 0; i < ops; ++i) {
      out.push_back(i > 0 && Chance(0.4) ? out.back() : Below(static_cast<int>(layouts.size())));
    }
    return out;
  }
  std::vector<int> Contiguous(int ops, const std::vector<model::Placement>& layouts) {
    std::vector<int> out;
    for (int i = 0; i < ops; ++i) out.push_back(i * static_cast<int>(layouts.size()) / ops);
    return out;
  }

  void MakeModel(Instance& out, int ops, const std::vector<int>& stage, bool chain, bool no_tables) {
    for (int i = 0; i < ops; ++i) {
      Op op;
      const int kind = Below(10);
      op.kind = kind < 7 ? OpKind::kDense : kind < 9 || no_tables ? OpKind::kPlain : OpKind::kTable;
      const auto near = [&](int other) {
        return !chain || stage[static_cast<size_t>(i)] - stage[static_cast<size_t>(other)] <= 1;
      };
      const int inputs = 1 + Below(3);
      for (int k = 0; k < inputs; ++k) {
        const int input = Below(i + 1) - 1;
        if (input < 0 || near(input)) op.inputs.push_back(input);
      }
      if (i > 0 && (op.inputs.empty() || chain || Chance(0.5))) op.inputs.push_back(i - 1);
      std::sort(op.inputs.begin(), op.inputs.end());
      op.inputs.erase(std::unique(op.inputs.begin(), op.inputs.end()), op.inputs.end());
      out.recipe.ops.push_back(op);
      const std::string name = "o" + std::to_string(i);
      out.model.layers.push_back(op.kind == OpKind::kTable   ? Table(name, op.inputs)
                                 : op.kind == OpKind::kDense ? Dense(name, 200.0 * (1 + Below(3)), op.inputs)
                                                             : Dense(name, 0, op.inputs));
    }
    for (int i = 0; i < ops; ++i) {
      bool used = false;
      for (const Op& op : out.recipe.ops) used |= std::count(op.inputs.begin(), op.inputs.end(), i) > 0;
      out.recipe.ops[static_cast<size_t>(i)].terminal = !used;
    }
  }

  void Place(Instance& out, const std::vector<int>& stage, std::vector<model::Placement>& layouts) {
    bool shared_table = false;
    for (int i = 0; i < static_cast<int>(stage.size()); ++i) {
      model::Placement& layout = layouts[static_cast<size_t>(stage[static_cast<size_t>(i)])];
      layout.operations.push_back({i, i + 1});
      shared_table |= out.recipe.ops[static_cast<size_t>(i)].kind == OpKind::kTable && layout.replicas.size() > 1;
    }
    for (model::Placement& layout : layouts) {
      if (!layout.operations.empty()) out.plan.placements.push_back(layout);
    }
    std::erase_if(out.plan.devices, [&](const model::Device& device) {
      for (const model::Placement& placement : out.plan.placements) {
        for (const model::Replica& replica : placement.replicas) {
          if (replica.device == device.id) return false;
        }
      }
      return true;
    });
    if (shared_table || Chance(0.1)) out.plan.servers = model::Servers{"ps", 1 + Below(2)};
  }

  void MakeOrder(model::ExecutionPlan& plan, int ops) {
    for (int i = 0; i < ops; ++i) {
      for (const auto phase : {model::Phase::kForward, model::Phase::kBackward, model::Phase::kReduce}) {
        plan.order.push_back({i, phase});
      }
    }
    std::shuffle(plan.order.begin(), plan.order.end(), random_);
  }

  void Describe(Instance& out, const std::vector<int>& stage, bool async, bool differs) {
    Recipe& recipe = out.recipe;
    const auto ops = stage.size();
    recipe.lag.assign(ops, 1);
    if (async) {  // stage i of S with M micro-batches
      std::vector<int> index(ops, 0);
      for (size_t i = 1; i < ops; ++i) {
        const auto layout = [&](size_t op) {
          for (size_t p = 0; p < out.plan.placements.size(); ++p) {
            for (const auto& range : out.plan.placements[p].operations) {
              if (range.Contains(static_cast<int>(op))) return out.plan.placements[p].replicas;
            }
          }
          return std::vector<model::Replica>{};
        };
        index[i] = index[i - 1] + (layout(i) == layout(i - 1) ? 0 : 1);
      }
      const int stages = index.back() + 1, micros = out.plan.schedule.micro_batches;
      for (size_t i = 0; i < ops; ++i) {
        recipe.lag[i] = 1 + (stages - index[i] - 1 + micros - 1) / micros;
        const int most = out.plan.schedule.max_staleness;
        if (most > 0) recipe.lag[i] = std::min(recipe.lag[i], most + 1);
      }
    }
    std::vector<int> all;
    for (int s = 0; s < recipe.count; ++s) all.push_back(s);
    recipe.samples = {all};
    recipe.groups = {{0}};
    if (!differs || out.plan.servers || out.plan.placements[0].replicas.size() < 2) return;
    model::Placement& placement = out.plan.placements[0];
    const int kind = Below(3);
    placement.sync.mode = kind == 0   ? model::SyncMode::kNone
                          : kind == 1 ? model::SyncMode::kPercentage
                                      : model::SyncMode::kFlexible;
    placement.sync.fraction = 0.5;
    placement.sync.target_ratio = 1;
    recipe.samples.clear();
    recipe.groups.clear();
    double before = 0;
    const int micros = 1;  // as in every plan without a pipeline
    for (size_t r = 0; r < placement.replicas.size(); ++r) {
      // The last cut is exactly 1.
      const double after = r + 1 == placement.replicas.size() ? 1 : before + placement.replicas[r].share;
      std::vector<int>& mine = recipe.samples.emplace_back();
      for (int m = 0; m < micros; ++m) {
        const int first = recipe.count * m / micros, size = recipe.count * (m + 1) / micros - first;
        for (auto s = std::lround(size * before); s < std::lround(size * after); ++s) {
          mine.push_back(first + static_cast<int>(s));
        }
      }
      before = after;
      if (placement.sync.hierarchy.empty()) recipe.groups.push_back({static_cast<int>(r)});
    }
    if (placement.sync.hierarchy.empty()) return;
    for (const auto& ids : placement.sync.hierarchy.front().groups) {
      std::vector<int>& group = recipe.groups.emplace_back();
      for (size_t r = 0; r < placement.replicas.size(); ++r) {
        if (std::count(ids.begin(), ids.end(), placement.replicas[r].device) > 0) group.push_back(static_cast<int>(r));
      }
    }
  }

  std::mt19937_64 random_;
};

}  // namespace medley::program::toy
