#include "common/program/blocks.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "common/base/status.h"
#include "common/model/allreduce.h"
#include "common/model/allreduce_algorithm.h"
#include "common/model/execution_plan.h"
#include "common/model/model.h"
#include "common/model/operation_range.h"
#include "common/model/sync.h"
#include "common/model/synchronisation.h"

namespace medley::program {
namespace {

using model::AllreduceAlgorithm;

// The pairs of replicas whose samples can overlap. Replicas that meet in one point share no sample of any batch,
// because rounding keeps the order of cuts.
std::vector<Pair> Overlaps(const Layout& from, const Layout& to) {
  std::vector<Pair> pairs;
  int t = 0;
  for (int f = 0; f < from.replicas(); ++f) {
    const double first = from.cuts[static_cast<size_t>(f)], end = from.cuts[static_cast<size_t>(f) + 1];
    while (t < to.replicas() && to.cuts[static_cast<size_t>(t) + 1] <= first) ++t;
    for (int i = t; i < to.replicas() && to.cuts[static_cast<size_t>(i)] < end; ++i) pairs.push_back({f, i});
  }
  return pairs;
}

AllreduceAlgorithm Resolve(AllreduceAlgorithm algorithm, const model::ExecutionPlan& plan, size_t ranks,
                           int64_t bytes) {
  if (algorithm != AllreduceAlgorithm::kAuto) return algorithm;
  return model::ChooseAllreduce(plan.algorithms, static_cast<int>(ranks), bytes);
}

class Builder {
 public:
  Builder(const model::ExecutionPlan& plan, const model::Model& model, const Lowered& lowered, int64_t max_instructions,
          Program& program)
      : plan_(plan), model_(model), lowered_(lowered), program_(program), room_(max_instructions) {}

  // Every replica of a block and every pair of a flow is at least one instruction of each micro-batch, so a program
  // that is too large is given up before it takes memory.
  absl::Status Build() {
    const int64_t most = room_;
    for (size_t s = 0; s < lowered_.segments.size(); ++s) Cut(static_cast<int>(s));
    for (const Block& block : program_.blocks) {
      room_ -= int64_t{program_.layouts[static_cast<size_t>(block.layout)].replicas()} * program_.micro_batches;
    }
    if (room_ >= 0) Connect();
    if (room_ >= 0) return absl::OkStatus();
    return base::ResourceExhausted(
        "the plan needs more than {} instructions: fewer micro-batches, devices or changes of placement are needed",
        most);
  }

 private:
  void Connect() {
    block_of_.resize(lowered_.operations.size());
    for (size_t b = 0; b < program_.blocks.size(); ++b) {
      const model::OperationRange& range = program_.blocks[b].operations;
      for (int i = range.first; i < range.end; ++i) block_of_[static_cast<size_t>(i)] = static_cast<int>(b);
    }
    for (size_t i = 0; i < lowered_.operations.size(); ++i) AddValue(static_cast<int>(i));
    if (!program_.Trains()) return;
    for (size_t v = 0; v < program_.values.size(); ++v) AddGradients(static_cast<int>(v));
    for (Block& block : program_.blocks) AddGroups(block);
  }

  // Nothing when there is no room left.
  std::vector<Pair> Pairs(int from, int to) {
    if (room_ < 0) return {};
    std::vector<Pair> pairs =
        Overlaps(program_.layouts[static_cast<size_t>(from)], program_.layouts[static_cast<size_t>(to)]);
    room_ -= static_cast<int64_t>(pairs.size()) * program_.micro_batches;
    return pairs;
  }

  const Operation& At(int operation) const { return lowered_.operations[static_cast<size_t>(operation)]; }

  void Cut(int segment) {
    const model::OperationRange range = lowered_.segments[static_cast<size_t>(segment)].operations;
    std::vector<model::OperationRange> cut;  // last first
    int end = range.end;
    int64_t bytes = 0;
    for (int i = range.end - 1; i >= range.first; --i) {
      const bool other = i + 1 < end && At(i).sync != At(i + 1).sync;
      const bool full = plan_.schedule.bucket_bytes > 0 && bytes > 0 && At(i).dense_bytes > 0 &&
                        bytes + At(i).dense_bytes > plan_.schedule.bucket_bytes;
      if (other || full) {
        cut.push_back({i + 1, end});
        end = i + 1;
        bytes = 0;
      }
      bytes += At(i).dense_bytes;
    }
    cut.push_back({range.first, end});
    std::reverse(cut.begin(), cut.end());
    for (const model::OperationRange& operations : cut) AddBlock(operations, segment);
  }

  void AddBlock(model::OperationRange operations, int segment) {
    Block block;
    block.operations = operations;
    block.layout = lowered_.segments[static_cast<size_t>(segment)].layout;
    block.segment = segment;
    for (int i = operations.first; i < operations.end; ++i) {
      block.dense |= At(i).dense_bytes > 0;
      block.reads_batch |= At(i).reads_batch;
      block.loss |= At(i).consumers.empty();
      if (At(i).table) block.tables.push_back(i);
    }
    program_.blocks.push_back(std::move(block));
  }

  void AddValue(int operation) {
    const int block = block_of_[static_cast<size_t>(operation)];
    Value value{
        operation, block, static_cast<int64_t>(model_.layers[static_cast<size_t>(operation)].output_bytes), {}, {}};
    for (const int consumer : At(operation).consumers) {
      const int other = block_of_[static_cast<size_t>(consumer)];
      if (other != block && (value.consumers.empty() || value.consumers.back() != other))
        value.consumers.push_back(other);
    }
    if (value.consumers.empty()) return;
    const int index = static_cast<int>(program_.values.size());
    program_.blocks[static_cast<size_t>(block)].outputs.push_back(index);
    for (const int consumer : value.consumers) {
      Block& to = program_.blocks[static_cast<size_t>(consumer)];
      to.inputs.push_back(index);
      AddFlow(index, value, to.layout);
    }
    program_.values.push_back(std::move(value));
  }

  void AddFlow(int index, Value& value, int layout) {
    const int from = program_.blocks[static_cast<size_t>(value.block)].layout;
    if (from == layout) return;
    for (const int flow : value.flows) {
      if (program_.flows[static_cast<size_t>(flow)].to_layout == layout) return;
    }
    value.flows.push_back(static_cast<int>(program_.flows.size()));
    program_.flows.push_back({index, false, from, layout, Pairs(from, layout)});
  }

  void AddGradients(int index) {
    const Value& value = program_.values[static_cast<size_t>(index)];
    const int home = program_.blocks[static_cast<size_t>(value.block)].layout;
    Gradient at_home{index, home, {}, {}};
    std::map<int, std::vector<int>> elsewhere;  // consumers by layout
    for (const int consumer : value.consumers) {
      const int layout = program_.blocks[static_cast<size_t>(consumer)].layout;
      (layout == home ? at_home.blocks : elsewhere[layout]).push_back(consumer);
    }
    for (auto& [layout, blocks] : elsewhere) {
      program_.gradients.push_back({index, layout, std::move(blocks), {}});
      at_home.flows.push_back(static_cast<int>(program_.flows.size()));
      program_.flows.push_back({index, true, layout, home, Pairs(layout, home)});
    }
    program_.gradients.push_back(std::move(at_home));
  }

  void AddGroups(Block& block) {
    const Layout& layout = program_.layouts[static_cast<size_t>(block.layout)];
    if (!block.dense || layout.replicas() == 1) return;
    int64_t bytes = 0;
    int sync = At(block.operations.first).sync;
    for (int i = block.operations.first; i < block.operations.end; ++i) {
      bytes += At(i).dense_bytes;
      if (At(i).dense_bytes > 0) sync = At(i).sync;
    }
    const model::Sync& how = lowered_.syncs[static_cast<size_t>(sync)];
    Group whole{block.layout, {}, Root(layout, how)};
    for (const model::HierarchyLevel& level : how.hierarchy) {
      whole.levels.push_back(InnerLevel(layout, level, whole.levels, bytes));
    }
    whole.levels.push_back(OuterLevel(layout, whole.levels, how, bytes));
    if (how.mode == model::SyncMode::kFull) {
      whole.served = !how.root.empty() && how.hierarchy.empty() && layout.replicas() <= kMaxServed &&
                     whole.levels.front().algorithm == model::AllreduceAlgorithm::kCentralized;
      block.group = AddGroup(std::move(whole));
      return;
    }
    if (!how.hierarchy.empty()) {  // the inner groups agree on gradients in every step
      block.group = AddGroup({block.layout, {whole.levels.begin(), whole.levels.end() - 1}, whole.root});
    }
    block.average = AddGroup(std::move(whole));
  }

  int AddGroup(Group group) {
    program_.groups.push_back(std::move(group));
    return static_cast<int>(program_.groups.size()) - 1;
  }

  int Root(const Layout& layout, const model::Sync& sync) const {
    for (int r = 0; r < layout.replicas(); ++r) {
      if (program_.devices[static_cast<size_t>(layout.devices[static_cast<size_t>(r)])].id == sync.root) return r;
    }
    return 0;
  }

  // Among the devices of each group, those that take part in this level: all, or the leaders of the groups below.
  ReduceLevel InnerLevel(const Layout& layout, const model::HierarchyLevel& from, const std::vector<ReduceLevel>& below,
                         int64_t bytes) const {
    std::vector<int> takes_part;
    if (below.empty()) {
      for (int r = 0; r < layout.replicas(); ++r) takes_part.push_back(r);
    } else {
      for (const std::vector<int>& group : below.back().groups) takes_part.push_back(group.front());
      std::ranges::sort(takes_part);
    }
    ReduceLevel level;
    size_t largest = 1;
    for (const std::vector<std::string>& ids : from.groups) {
      const std::set<std::string_view> named(ids.begin(), ids.end());
      std::vector<int> members;
      for (const int r : takes_part) {
        const std::string& id = program_.devices[static_cast<size_t>(layout.devices[static_cast<size_t>(r)])].id;
        if (named.contains(id)) members.push_back(r);
      }
      largest = std::max(largest, members.size());
      level.groups.push_back(std::move(members));
    }
    level.algorithm = Resolve(from.algorithm, plan_, largest, bytes);
    return level;
  }

  ReduceLevel OuterLevel(const Layout& layout, const std::vector<ReduceLevel>& inner, const model::Sync& sync,
                         int64_t bytes) const {
    ReduceLevel level;
    std::vector<int>& members = level.groups.emplace_back();
    if (inner.empty()) {
      for (int r = 0; r < layout.replicas(); ++r) members.push_back(r);
    } else {
      for (const std::vector<int>& group : inner.back().groups) members.push_back(group.front());
    }
    level.algorithm = Resolve(sync.algorithm, plan_, members.size(), bytes);
    return level;
  }

  const model::ExecutionPlan& plan_;
  const model::Model& model_;
  const Lowered& lowered_;
  Program& program_;
  int64_t room_;  // instructions that are left; negative: the plan is refused
  std::vector<int> block_of_;
};

}  // namespace

absl::Status MakeBlocks(const model::ExecutionPlan& plan, const model::Model& model, const Lowered& lowered,
                        int64_t max_instructions, Program& program) {
  return Builder(plan, model, lowered, max_instructions, program).Build();
}

}  // namespace medley::program
