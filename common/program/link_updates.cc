// What follows the backward passes of a step: rows, reductions, shared parameters, norms, updates, reports.
#include <algorithm>
#include <map>
#include <utility>

#include "common/program/linker.h"

namespace medley::program {

void Linker::PushRows(const Action& action) {
  const Block& block = this->block(action.block);
  const Layout& layout = this->layout(block.layout);
  for (size_t t = 0; t < block.tables.size(); ++t) {
    std::vector<int> pushes;
    for (int r = 0; r < layout.replicas(); ++r) {
      const int device = layout.devices[static_cast<size_t>(r)];
      NeedBackward(action.block, r);
      pushes.push_back(Add({.kind = Kind::kPushRows,
                            .shift = static_cast<uint16_t>(action.shift),
                            .device = device,
                            .block = action.block,
                            .replica = r,
                            .table = block.tables[t]}));
      done_[static_cast<size_t>(device)].push_back(pushes.back());
    }
    std::vector<int> updates;
    for (size_t d = static_cast<size_t>(lowered_.trainers); d < program_.devices.size(); ++d) {
      for (const int push : pushes) NeedsNow(push);
      updates.push_back(Add({.kind = Kind::kUpdateRows,
                             .shift = static_cast<uint16_t>(action.shift),
                             .device = static_cast<int>(d),
                             .block = action.block,
                             .table = block.tables[t]}));
      done_[d].push_back(updates.back());
    }
    // The next pull waits for the servers, or for the only replica's own update.
    for (const int pull : pull_[static_cast<size_t>(action.block)][t]) {
      for (const int update : updates.empty() ? pushes : updates) AddNeed(pull, {nullptr, update, block.lag});
    }
  }
}

void Linker::Reduce(int b, int shift) {
  const Block& block = this->block(b);
  if (block.group == kNoInstruction) return;
  for (int r = 0; r < layout(block.layout).replicas(); ++r) {
    NeedBackward(b, r);
    reduce_[static_cast<size_t>(b)][static_cast<size_t>(r)] =
        Add({.kind = Kind::kAllReduce,
             .shift = static_cast<uint16_t>(shift),
             .device = layout(block.layout).devices[static_cast<size_t>(r)],
             .block = b,
             .replica = r});
  }
}

void Linker::NeedReduced(int b, int r) {
  if (block(b).group == kNoInstruction) return NeedBackward(b, r);
  Needs(&reduce_[static_cast<size_t>(b)][static_cast<size_t>(r)]);
}

void Linker::Share() {
  share_.assign(program_.shared.size(), std::vector<int>(program_.devices.size(), kNoInstruction));
  for (size_t s = 0; s < program_.shared.size(); ++s) {
    const Shared& shared = program_.shared[s];
    for (int d = 0; d < lowered_.trainers; ++d) {
      int first = kNoInstruction;
      for (const int b : shared.blocks) {
        if (first == kNoInstruction && ReplicaOn(b, d) != kNoInstruction) first = b;
      }
      if (first == kNoInstruction) continue;
      for (int b = 0; b < static_cast<int>(program_.blocks.size()); ++b) {
        if (block(b).dense && ReplicaOn(b, d) != kNoInstruction) NeedReduced(b, ReplicaOn(b, d));
      }
      const int rank =
          shared.group == kNoInstruction ? 0 : RankOn(program_.groups[static_cast<size_t>(shared.group)].layout, d);
      share_[s][static_cast<size_t>(d)] =
          Add({.kind = Kind::kShare, .device = d, .block = first, .replica = rank, .gradient = static_cast<int>(s)});
    }
  }
}

int Linker::RankOn(int in, int device) const {
  const std::vector<int>& devices = layout(in).devices;
  const auto at = std::ranges::find(devices, device);
  return at == devices.end() ? kNoInstruction : static_cast<int>(at - devices.begin());
}

void Linker::NeedShared(int b, int device) {
  for (size_t s = 0; s < share_.size(); ++s) {
    const std::vector<int>& blocks = program_.shared[s].blocks;
    if (b != kNoInstruction && std::ranges::find(blocks, b) == blocks.end()) continue;
    if (share_[s][static_cast<size_t>(device)] != kNoInstruction) Needs(&share_[s][static_cast<size_t>(device)]);
  }
}

void Linker::Norm() {
  norm_.assign(program_.devices.size(), kNoInstruction);
  for (int d = 0; d < lowered_.trainers; ++d) {
    int first = kNoInstruction;
    for (int b = 0; b < static_cast<int>(program_.blocks.size()); ++b) {
      const Block& block = this->block(b);
      const std::vector<int>& devices = layout(block.layout).devices;
      const auto at = std::ranges::find(devices, d);
      if (!block.dense || at == devices.end()) continue;
      NeedReduced(b, static_cast<int>(at - devices.begin()));
      if (first == kNoInstruction) first = b;
    }
    if (first == kNoInstruction) continue;
    NeedShared(kNoInstruction, d);
    int rank = 0;
    if (program_.norm_group != kNoInstruction) {
      const Group& group = program_.groups[static_cast<size_t>(program_.norm_group)];
      const std::vector<int>& members = layout(group.layout).devices;
      rank = static_cast<int>(std::ranges::find(members, d) - members.begin());
    }
    norm_[static_cast<size_t>(d)] = Add({.kind = Kind::kNorm, .device = d, .block = first, .replica = rank});
  }
}

void Linker::Update(int b, int shift) {
  const Block& block = this->block(b);
  if (!block.dense) return;
  for (int r = 0; r < layout(block.layout).replicas(); ++r) {
    const int device = layout(block.layout).devices[static_cast<size_t>(r)];
    NeedReduced(b, r);
    NeedShared(b, device);
    if (program_.clips) Needs(&norm_[static_cast<size_t>(device)]);
    const int update =
        Add({.kind = Kind::kUpdate, .shift = static_cast<uint16_t>(shift), .device = device, .block = b, .replica = r});
    update_[static_cast<size_t>(b)][static_cast<size_t>(r)] = update;
    done_[static_cast<size_t>(device)].push_back(update);
  }
  if (block.average == kNoInstruction) return;
  for (int r = 0; r < layout(block.layout).replicas(); ++r) {
    const int device = layout(block.layout).devices[static_cast<size_t>(r)];
    int& update = update_[static_cast<size_t>(b)][static_cast<size_t>(r)];
    NeedsNow(update);
    update = Add(
        {.kind = Kind::kAverage, .shift = static_cast<uint16_t>(shift), .device = device, .block = b, .replica = r});
    done_[static_cast<size_t>(device)].push_back(update);
  }
}

void Linker::Finish() {
  for (const int b : order_.reductions) Reduce(b, 0);
  Share();
  if (program_.clips) Norm();
  if (UpdatesAt() == Updates::kAtEnd) {
    for (const auto& [block, shift] : ended_) Update(block, shift);
  }
  // The last use of a step's buffers is the last pass of a block, even where nothing is updated.
  for (size_t b = 0; b < program_.blocks.size(); ++b) {
    const Layout& layout = this->layout(program_.blocks[b].layout);
    for (int r = 0; r < layout.replicas(); ++r) {
      Ids& passes = program_.Trains() ? backward_[b] : forward_[b];
      done_[static_cast<size_t>(layout.devices[static_cast<size_t>(r)])].push_back(
          passes.At(micros_ - 1, static_cast<size_t>(r)));
    }
  }
  // A step computes with the parameters of `lag` steps before.
  for (size_t b = 0; b < program_.blocks.size(); ++b) {
    for (int r = 0; r < static_cast<int>(update_[b].size()); ++r) {
      const int update = update_[b][static_cast<size_t>(r)];
      if (update == kNoInstruction) continue;
      for (int m = 0; m < micros_; ++m) {
        AddNeed(forward_[b].At(m, static_cast<size_t>(r)), {nullptr, update, program_.blocks[b].lag});
      }
    }
  }
  for (int d = 0; d < static_cast<int>(program_.devices.size()); ++d) {
    uint16_t shift = 0;  // the step ends in the iteration of its last instruction
    for (const int instruction : done_[static_cast<size_t>(d)]) {
      NeedsNow(instruction);
      shift = std::max(shift, program_.instructions[static_cast<size_t>(instruction)].shift);
    }
    report_[static_cast<size_t>(d)] = Add({.kind = Kind::kReport, .shift = shift, .device = d});
  }
  ReuseBuffers();
  Resolve();
}

void Linker::ReuseBuffers() {
  std::map<std::pair<int, int>, int> first;  // (device, peer): a receive
  for (int i = 0; i < static_cast<int>(program_.instructions.size()); ++i) {
    const Instruction& one = program_.instructions[static_cast<size_t>(i)];
    if (one.kind != Kind::kReceive || one.peer == one.device) continue;
    const auto [it, inserted] = first.try_emplace({one.device, one.peer}, i);
    if (!inserted && one.shift < program_.instructions[static_cast<size_t>(it->second)].shift) it->second = i;
  }
  for (const auto& [channel, i] : first) {
    AddNeed(i, {nullptr, report_[static_cast<size_t>(channel.first)], program_.open_steps});
  }
  for (size_t d = 0; d < load_.size(); ++d) {
    if (load_[d] != kNoInstruction) AddNeed(load_[d], {nullptr, report_[d], program_.open_steps});
  }
}

void Linker::Resolve() {
  for (size_t i = 0; i < program_.instructions.size(); ++i) {
    Instruction& instruction = program_.instructions[i];
    instruction.first_dependency = static_cast<int32_t>(program_.all_dependencies.size());
    for (const Need& need : needs_of_[i]) {
      const int id = need.slot == nullptr ? need.instruction : *need.slot;
      if (id != kNoInstruction) program_.all_dependencies.push_back({id, need.steps_back});
    }
    instruction.dependencies = static_cast<int32_t>(program_.all_dependencies.size()) - instruction.first_dependency;
  }
}

}  // namespace medley::program
