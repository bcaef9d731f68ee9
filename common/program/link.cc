#include "common/program/link.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "common/base/status.h"

namespace medley::program {
namespace {

constexpr int kNone = -1;

class Linker {
 public:
  Linker(const Lowered& lowered, const Order& order, int64_t max_instructions, Program& program)
      : lowered_(lowered),
        order_(order),
        max_instructions_(max_instructions),
        program_(program),
        micros_(program.micro_batches) {}

  absl::Status Link() {
    Prepare();
    if (Estimate() > max_instructions_) {
      return base::ResourceExhausted(
          "the plan needs about {} instructions, more than {}: fewer micro-batches, devices "
          "or changes of placement are needed",
          Estimate(), max_instructions_);
    }
    Begin();
    for (const Action& action : order_.actions) {
      const bool first = !action.backward && action.micro == 0;
      if (first && UpdatesAt() == Updates::kNextStep) Update(action.block, action.shift + 1);
      if (action.backward) {
        Backward(action);
      } else {
        Forward(action);
      }
    }
    Finish();
    CutLists();
    return absl::OkStatus();
  }

 private:
  // Ids of an instruction for each micro-batch and replica (or pair); kNone where there is none yet.
  struct Ids {
    size_t width = 0;
    std::vector<int> ids;
    void Resize(int micros, size_t w) {
      width = w;
      ids.assign(static_cast<size_t>(micros) * w, kNone);
    }
    int& At(int micro, size_t i) { return ids[static_cast<size_t>(micro) * width + i]; }
  };

  const Block& block(int b) const { return program_.blocks[static_cast<size_t>(b)]; }
  const Layout& layout(int l) const { return program_.layouts[static_cast<size_t>(l)]; }
  const Flow& flow(int f) const { return program_.flows[static_cast<size_t>(f)]; }
  const Value& value(int v) const { return program_.values[static_cast<size_t>(v)]; }

  void Prepare() {
    forward_.resize(program_.blocks.size());
    backward_.resize(program_.blocks.size());
    update_.resize(program_.blocks.size());
    reduce_.resize(program_.blocks.size());
    for (size_t b = 0; b < program_.blocks.size(); ++b) {
      const auto replicas = static_cast<size_t>(layout(program_.blocks[b].layout).replicas());
      forward_[b].Resize(micros_, replicas);
      backward_[b].Resize(micros_, replicas);
      update_[b].assign(replicas, kNone);
      reduce_[b].assign(replicas, kNone);
    }
    receive_.resize(program_.flows.size());
    to_.resize(program_.flows.size());
    for (size_t f = 0; f < program_.flows.size(); ++f) {
      receive_[f].Resize(micros_, program_.flows[f].pairs.size());
      to_[f].resize(static_cast<size_t>(layout(program_.flows[f].to_layout).replicas()));
      for (size_t p = 0; p < program_.flows[f].pairs.size(); ++p) {
        to_[f][static_cast<size_t>(program_.flows[f].pairs[p].to)].push_back(p);
      }
    }
    sum_.resize(program_.gradients.size());
    parts_left_.resize(program_.gradients.size());
    gradient_at_.resize(program_.values.size());
    for (size_t g = 0; g < program_.gradients.size(); ++g) {
      const Gradient& gradient = program_.gradients[g];
      sum_[g].Resize(micros_, static_cast<size_t>(layout(gradient.layout).replicas()));
      parts_left_[g].assign(static_cast<size_t>(micros_), static_cast<int>(gradient.blocks.size()));
      gradient_at_[static_cast<size_t>(gradient.value)].emplace_back(gradient.layout, static_cast<int>(g));
    }
    gradient_flow_.resize(program_.values.size());
    for (size_t f = 0; f < program_.flows.size(); ++f) {
      if (program_.flows[f].gradient) {
        gradient_flow_[static_cast<size_t>(program_.flows[f].value)].emplace_back(program_.flows[f].from_layout,
                                                                                  static_cast<int>(f));
      }
    }
    load_.assign(program_.devices.size(), kNone);
    report_.assign(program_.devices.size(), kNone);
    done_.resize(program_.devices.size());
  }

  // An upper bound of the number of instructions.
  int64_t Estimate() const {
    int64_t count = 0;
    for (const Block& block : program_.blocks) {
      const int64_t replicas = layout(block.layout).replicas();
      count += replicas * (2 * micros_ + 3 + 2 * static_cast<int64_t>(block.tables.size()));
      count += static_cast<int64_t>(block.tables.size() * program_.devices.size());
    }
    for (const Flow& flow : program_.flows) count += 2 * micros_ * static_cast<int64_t>(flow.pairs.size());
    for (const Gradient& gradient : program_.gradients) {
      count += static_cast<int64_t>(micros_) * layout(gradient.layout).replicas();
    }
    return count + 3 * static_cast<int64_t>(program_.devices.size());
  }

  // What an instruction needs: the instruction in a slot, which may be filled later (an asynchronous schedule starts a
  // pass before, in the same iteration, what another step needs of it), or one that is known.
  struct Need {
    const int* slot = nullptr;
    int instruction = kNone;
    int steps_back = 0;
  };
  void Needs(const int* slot) { needs_.push_back({slot, kNone, 0}); }
  void NeedsNow(int instruction) { needs_.push_back({nullptr, instruction, 0}); }

  int Add(Instruction instruction) {
    program_.instructions.push_back(instruction);
    needs_of_.push_back(std::move(needs_));
    needs_.clear();
    return static_cast<int>(program_.instructions.size()) - 1;
  }
  void AddNeed(int instruction, Need need) { needs_of_[static_cast<size_t>(instruction)].push_back(need); }

  void Begin() {
    std::vector<bool> reads(program_.devices.size(), false);
    for (const Block& block : program_.blocks) {
      if (!block.reads_batch) continue;
      for (const int device : layout(block.layout).devices) reads[static_cast<size_t>(device)] = true;
    }
    for (int d = 0; d < lowered_.trainers; ++d) {
      if (!reads[static_cast<size_t>(d)]) continue;
      load_[static_cast<size_t>(d)] = Add({.kind = Kind::kLoadBatch, .device = d});
    }
    pull_.resize(program_.blocks.size());
    for (size_t b = 0; b < program_.blocks.size(); ++b) {
      const Block& block = program_.blocks[b];
      for (const int table : block.tables) {
        std::vector<int>& pulls = pull_[b].emplace_back();
        for (int r = 0; r < layout(block.layout).replicas(); ++r) {
          const int device = layout(block.layout).devices[static_cast<size_t>(r)];
          Needs(&load_[static_cast<size_t>(device)]);
          pulls.push_back(Add(
              {.kind = Kind::kPullRows, .device = device, .block = static_cast<int>(b), .replica = r, .table = table}));
        }
      }
    }
  }

  void Forward(const Action& action) {
    const Block& block = this->block(action.block);
    const Layout& layout = this->layout(block.layout);
    for (int r = 0; r < layout.replicas(); ++r) {
      const int device = layout.devices[static_cast<size_t>(r)];
      if (block.reads_batch) Needs(&load_[static_cast<size_t>(device)]);
      for (const std::vector<int>& pulls : pull_[static_cast<size_t>(action.block)])
        Needs(&pulls[static_cast<size_t>(r)]);
      for (const int input : block.inputs) NeedValue(input, block.layout, r, action.micro);
      forward_[static_cast<size_t>(action.block)].At(action.micro, static_cast<size_t>(r)) =
          Add({.kind = Kind::kForward,
               .shift = static_cast<uint16_t>(action.shift),
               .device = device,
               .block = action.block,
               .micro = action.micro,
               .replica = r});
    }
    for (const int output : block.outputs) {
      for (const int flow : value(output).flows) {
        Move(flow, action, [&](int r) {
          Needs(&forward_[static_cast<size_t>(action.block)].At(action.micro, static_cast<size_t>(r)));
        });
      }
    }
  }

  // A block of the layout needs the samples of replica `r` of a value.
  void NeedValue(int index, int to_layout, int r, int micro) {
    const Value& value = this->value(index);
    if (block(value.block).layout == to_layout) {
      Needs(&forward_[static_cast<size_t>(value.block)].At(micro, static_cast<size_t>(r)));
      return;
    }
    for (const int f : value.flows) {
      if (flow(f).to_layout == to_layout) NeedFlow(f, r, micro);
    }
  }
  void NeedFlow(int f, int r, int micro) {
    for (const size_t pair : to_[static_cast<size_t>(f)][static_cast<size_t>(r)]) {
      Needs(&receive_[static_cast<size_t>(f)].At(micro, pair));
    }
  }

  // `need_source(r)` adds the dependency on what replica r of the flow's origin sends.
  template <typename NeedSource>
  void Move(int f, const Action& action, const NeedSource& need_source) {
    const Flow& flow = this->flow(f);
    for (size_t p = 0; p < flow.pairs.size(); ++p) {
      const Pair pair = flow.pairs[p];
      const int from = layout(flow.from_layout).devices[static_cast<size_t>(pair.from)];
      const int to = layout(flow.to_layout).devices[static_cast<size_t>(pair.to)];
      int send = kNone;
      need_source(pair.from);
      if (from != to) {
        send = Add({.kind = Kind::kSend,
                    .shift = static_cast<uint16_t>(action.shift),
                    .device = from,
                    .micro = action.micro,
                    .replica = pair.from,
                    .flow = f,
                    .peer = to});
        done_[static_cast<size_t>(from)].push_back(send);
        NeedsNow(send);
      }
      const int receive = Add({.kind = Kind::kReceive,
                               .shift = static_cast<uint16_t>(action.shift),
                               .device = to,
                               .micro = action.micro,
                               .replica = pair.to,
                               .flow = f,
                               .peer = from,
                               .match = send});
      if (send != kNone) program_.instructions[static_cast<size_t>(send)].match = receive;
      receive_[static_cast<size_t>(f)].At(action.micro, p) = receive;
    }
  }

  int GradientAt(int value, int layout) const {
    for (const auto& [at, gradient] : gradient_at_[static_cast<size_t>(value)]) {
      if (at == layout) return gradient;
    }
    return kNone;
  }

  // Needs the gradient of a value on replica `r` of a layout: the sum of its parts, or its only part.
  void NeedGradient(int g, int r, int micro) {
    if (program_.gradients[static_cast<size_t>(g)].parts() < 2) return NeedParts(g, r, micro);
    Needs(&sum_[static_cast<size_t>(g)].At(micro, static_cast<size_t>(r)));
  }
  void NeedParts(int g, int r, int micro) {
    const Gradient& gradient = program_.gradients[static_cast<size_t>(g)];
    for (const int b : gradient.blocks) Needs(&backward_[static_cast<size_t>(b)].At(micro, static_cast<size_t>(r)));
    for (const int f : gradient.flows) NeedFlow(f, r, micro);
  }
  void AddSums(int g, const Action& action) {
    const Gradient& gradient = program_.gradients[static_cast<size_t>(g)];
    if (gradient.parts() < 2) return;
    for (int r = 0; r < layout(gradient.layout).replicas(); ++r) {
      NeedParts(g, r, action.micro);
      sum_[static_cast<size_t>(g)].At(action.micro, static_cast<size_t>(r)) =
          Add({.kind = Kind::kSum,
               .shift = static_cast<uint16_t>(action.shift),
               .device = layout(gradient.layout).devices[static_cast<size_t>(r)],
               .micro = action.micro,
               .replica = r,
               .gradient = g});
    }
  }

  void Backward(const Action& action) {
    const Block& block = this->block(action.block);
    const Layout& layout = this->layout(block.layout);
    for (const int output : block.outputs) AddSums(GradientAt(output, block.layout), action);
    for (int r = 0; r < layout.replicas(); ++r) {
      Needs(&forward_[static_cast<size_t>(action.block)].At(action.micro, static_cast<size_t>(r)));
      for (const int output : block.outputs) NeedGradient(GradientAt(output, block.layout), r, action.micro);
      backward_[static_cast<size_t>(action.block)].At(action.micro, static_cast<size_t>(r)) =
          Add({.kind = Kind::kBackward,
               .shift = static_cast<uint16_t>(action.shift),
               .device = layout.devices[static_cast<size_t>(r)],
               .block = action.block,
               .micro = action.micro,
               .replica = r});
    }
    for (const int input : block.inputs) SendGradient(input, block.layout, action);
    if (action.micro + 1 < micros_) return;  // every block computes its micro-batches in their order
    ended_.emplace_back(action.block, action.shift);
    PushRows(action);
    if (order_.reductions.empty()) Reduce(action.block, action.shift);
    if (UpdatesAt() == Updates::kAtOnce) Update(action.block, action.shift);
  }

  // When all blocks of a layout have computed their parts of a value's gradient, sends it to where the value came from.
  void SendGradient(int input, int from_layout, const Action& action) {
    if (block(value(input).block).layout == from_layout) return;
    const int g = GradientAt(input, from_layout);
    if (--parts_left_[static_cast<size_t>(g)][static_cast<size_t>(action.micro)] > 0) return;
    AddSums(g, action);
    for (const auto& [from, flow] : gradient_flow_[static_cast<size_t>(input)]) {
      if (from == from_layout) Move(flow, action, [&](int r) { NeedGradient(g, r, action.micro); });
    }
  }

  // The last micro-batch; the list of the device keeps the order of the others.
  void NeedBackward(int b, int r) { Needs(&backward_[static_cast<size_t>(b)].At(micros_ - 1, static_cast<size_t>(r))); }

  void PushRows(const Action& action) {
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

  void Reduce(int b, int shift) {
    const Block& block = this->block(b);
    if (block.group == kNone) return;
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

  // The norm of all gradients needs all of them.
  Updates UpdatesAt() const { return program_.clips || !program_.shared.empty() ? Updates::kAtEnd : order_.updates; }
  // The reduced gradient of a block, or its only part.
  void NeedReduced(int b, int r) {
    if (block(b).group == kNone) return NeedBackward(b, r);
    Needs(&reduce_[static_cast<size_t>(b)][static_cast<size_t>(r)]);
  }

  // For each shared parameter, on each device with it, after all reductions of the device: one collective at a time.
  void Share() {
    share_.assign(program_.shared.size(), std::vector<int>(program_.devices.size(), kNone));
    for (size_t s = 0; s < program_.shared.size(); ++s) {
      const Shared& shared = program_.shared[s];
      for (int d = 0; d < lowered_.trainers; ++d) {
        int first = kNone;
        for (const int b : shared.blocks) {
          if (first == kNone && ReplicaOn(b, d) != kNone) first = b;
        }
        if (first == kNone) continue;
        for (int b = 0; b < static_cast<int>(program_.blocks.size()); ++b) {
          if (block(b).dense && ReplicaOn(b, d) != kNone) NeedReduced(b, ReplicaOn(b, d));
        }
        const int rank =
            shared.group == kNone ? 0 : RankOn(program_.groups[static_cast<size_t>(shared.group)].layout, d);
        share_[s][static_cast<size_t>(d)] =
            Add({.kind = Kind::kShare, .device = d, .block = first, .replica = rank, .gradient = static_cast<int>(s)});
      }
    }
  }

  // The index of a device in a layout; kNone: it is not in it.
  int RankOn(int in, int device) const {
    const std::vector<int>& devices = layout(in).devices;
    const auto at = std::ranges::find(devices, device);
    return at == devices.end() ? kNone : static_cast<int>(at - devices.begin());
  }
  int ReplicaOn(int b, int device) const { return RankOn(block(b).layout, device); }

  void NeedShared(int b, int device) {
    for (size_t s = 0; s < share_.size(); ++s) {
      const std::vector<int>& blocks = program_.shared[s].blocks;
      if (b != kNone && std::ranges::find(blocks, b) == blocks.end()) continue;
      if (share_[s][static_cast<size_t>(device)] != kNone) Needs(&share_[s][static_cast<size_t>(device)]);
    }
  }

  // After all reductions of a device.
  void Norm() {
    norm_.assign(program_.devices.size(), kNone);
    for (int d = 0; d < lowered_.trainers; ++d) {
      int first = kNone;
      for (int b = 0; b < static_cast<int>(program_.blocks.size()); ++b) {
        const Block& block = this->block(b);
        const std::vector<int>& devices = layout(block.layout).devices;
        const auto at = std::ranges::find(devices, d);
        if (!block.dense || at == devices.end()) continue;
        NeedReduced(b, static_cast<int>(at - devices.begin()));
        if (first == kNone) first = b;
      }
      if (first == kNone) continue;
      NeedShared(kNone, d);
      int rank = 0;
      if (program_.norm_group != kNone) {
        const Group& group = program_.groups[static_cast<size_t>(program_.norm_group)];
        const std::vector<int>& members = layout(group.layout).devices;
        rank = static_cast<int>(std::ranges::find(members, d) - members.begin());
      }
      norm_[static_cast<size_t>(d)] = Add({.kind = Kind::kNorm, .device = d, .block = first, .replica = rank});
    }
  }

  void Update(int b, int shift) {
    const Block& block = this->block(b);
    if (!block.dense) return;
    for (int r = 0; r < layout(block.layout).replicas(); ++r) {
      const int device = layout(block.layout).devices[static_cast<size_t>(r)];
      NeedReduced(b, r);
      NeedShared(b, device);
      if (program_.clips) Needs(&norm_[static_cast<size_t>(device)]);
      const int update = Add(
          {.kind = Kind::kUpdate, .shift = static_cast<uint16_t>(shift), .device = device, .block = b, .replica = r});
      update_[static_cast<size_t>(b)][static_cast<size_t>(r)] = update;
      done_[static_cast<size_t>(device)].push_back(update);
    }
    if (block.average == kNone) return;
    for (int r = 0; r < layout(block.layout).replicas(); ++r) {
      const int device = layout(block.layout).devices[static_cast<size_t>(r)];
      int& update = update_[static_cast<size_t>(b)][static_cast<size_t>(r)];
      NeedsNow(update);
      update = Add(
          {.kind = Kind::kAverage, .shift = static_cast<uint16_t>(shift), .device = device, .block = b, .replica = r});
      done_[static_cast<size_t>(device)].push_back(update);
    }
  }

  void Finish() {
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
        if (update == kNone) continue;
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

  // The buffers of a step are those of the step `open_steps` before. What a device computes follows from its batch and
  // from what it receives, so it is enough that these wait: of each list, what comes first of a step.
  void ReuseBuffers() {
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
      if (load_[d] != kNone) AddNeed(load_[d], {nullptr, report_[d], program_.open_steps});
    }
  }

  void Resolve() {
    for (size_t i = 0; i < program_.instructions.size(); ++i) {
      Instruction& instruction = program_.instructions[i];
      instruction.first_dependency = static_cast<int32_t>(program_.all_dependencies.size());
      for (const Need& need : needs_of_[i]) {
        const int id = need.slot == nullptr ? need.instruction : *need.slot;
        if (id != kNone) program_.all_dependencies.push_back({id, need.steps_back});
      }
      instruction.dependencies = static_cast<int32_t>(program_.all_dependencies.size()) - instruction.first_dependency;
    }
  }

  static ListKind ListOf(const Instruction& instruction) {
    switch (instruction.kind) {
      case Kind::kLoadBatch:
      case Kind::kReport:
        return ListKind::kHost;
      case Kind::kForward:
      case Kind::kBackward:
      case Kind::kSum:
      case Kind::kUpdate:
        return ListKind::kCompute;
      case Kind::kReceive:
        return instruction.peer == instruction.device ? ListKind::kCompute : ListKind::kReceive;
      case Kind::kSend:
        return ListKind::kSend;
      case Kind::kPullRows:
        return ListKind::kPull;
      case Kind::kPushRows:
        return ListKind::kPush;
      case Kind::kUpdateRows:
        return ListKind::kServer;
      case Kind::kAllReduce:
      case Kind::kShare:
      case Kind::kNorm:
      case Kind::kAverage:
        return ListKind::kCollective;
    }
    return ListKind::kHost;
  }

  void CutLists() {
    std::map<std::tuple<int, ListKind, int>, List> lists;
    for (size_t i = 0; i < program_.instructions.size(); ++i) {
      const Instruction& instruction = program_.instructions[i];
      const ListKind kind = ListOf(instruction);
      int peer = kind == ListKind::kSend || kind == ListKind::kReceive ? instruction.peer : -1;
      if (instruction.kind == Kind::kAllReduce) peer = program_.ServerOf(instruction.block);
      List& list = lists[{instruction.device, kind, peer}];
      list.kind = kind;
      list.device = instruction.device;
      list.peer = peer;
      list.instructions.push_back(static_cast<int>(i));
    }
    for (auto& [key, list] : lists) program_.lists.push_back(std::move(list));
  }

  const Lowered& lowered_;
  const Order& order_;
  const int64_t max_instructions_;
  Program& program_;
  const int micros_;
  std::vector<Need> needs_;                                      // of the next instruction
  std::vector<std::vector<Need>> needs_of_;                      // of each instruction
  std::vector<Ids> forward_, backward_;                          // by block; replicas
  std::vector<Ids> receive_;                                     // by flow; pairs
  std::vector<Ids> sum_;                                         // by gradient; replicas
  std::vector<std::vector<int>> parts_left_;                     // by gradient and micro-batch
  std::vector<std::vector<std::vector<size_t>>> to_;             // by flow and receiving replica: its pairs
  std::vector<std::vector<std::pair<int, int>>> gradient_at_;    // by value: layout, gradient
  std::vector<std::vector<std::pair<int, int>>> gradient_flow_;  // by value: layout, flow
  std::vector<std::pair<int, int>> ended_;  // blocks whose backward passes have ended, in this order, with shift
  std::vector<std::vector<int>> reduce_;    // by block and replica
  std::vector<std::vector<int>> share_;     // by shared parameter and device
  std::vector<int> norm_;                   // by device
  std::vector<std::vector<int>> update_;    // by block and replica: the last change of its parameters in a step
  std::vector<std::vector<std::vector<int>>> pull_;  // by block, table and replica
  std::vector<int> load_, report_;                   // by device
  std::vector<std::vector<int>> done_;               // by device: what a step consists of, for its Report
};

}  // namespace

absl::Status Link(const Lowered& lowered, const Order& order, int64_t max_instructions, Program& program) {
  return Linker(lowered, order, max_instructions, program).Link();
}

}  // namespace medley::program
