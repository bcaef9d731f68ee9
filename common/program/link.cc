#include "common/program/link.h"

#include <algorithm>
#include <utility>

#include "common/base/status.h"
#include "common/program/linker.h"
#include "common/program/lists.h"

namespace medley::program {

absl::Status Linker::Link() {
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
  CutLists(program_);
  return absl::OkStatus();
}

void Linker::Prepare() {
  forward_.resize(program_.blocks.size());
  backward_.resize(program_.blocks.size());
  update_.resize(program_.blocks.size());
  reduce_.resize(program_.blocks.size());
  for (size_t b = 0; b < program_.blocks.size(); ++b) {
    const auto replicas = static_cast<size_t>(layout(program_.blocks[b].layout).replicas());
    forward_[b].Resize(micros_, replicas);
    backward_[b].Resize(micros_, replicas);
    update_[b].assign(replicas, kNoInstruction);
    reduce_[b].assign(replicas, kNoInstruction);
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
  load_.assign(program_.devices.size(), kNoInstruction);
  report_.assign(program_.devices.size(), kNoInstruction);
  done_.resize(program_.devices.size());
}

int64_t Linker::Estimate() const {
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

int Linker::Add(Instruction instruction) {
  program_.instructions.push_back(instruction);
  needs_of_.push_back(std::move(needs_));
  needs_.clear();
  return static_cast<int>(program_.instructions.size()) - 1;
}

void Linker::Begin() {
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

void Linker::Forward(const Action& action) {
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

void Linker::NeedValue(int index, int to_layout, int r, int micro) {
  const Value& value = this->value(index);
  if (block(value.block).layout == to_layout) {
    Needs(&forward_[static_cast<size_t>(value.block)].At(micro, static_cast<size_t>(r)));
    return;
  }
  for (const int f : value.flows) {
    if (flow(f).to_layout == to_layout) NeedFlow(f, r, micro);
  }
}

void Linker::NeedFlow(int f, int r, int micro) {
  for (const size_t pair : to_[static_cast<size_t>(f)][static_cast<size_t>(r)]) {
    Needs(&receive_[static_cast<size_t>(f)].At(micro, pair));
  }
}

template <typename NeedSource>
void Linker::Move(int f, const Action& action, const NeedSource& need_source) {
  const Flow& flow = this->flow(f);
  for (size_t p = 0; p < flow.pairs.size(); ++p) {
    const Pair pair = flow.pairs[p];
    const int from = layout(flow.from_layout).devices[static_cast<size_t>(pair.from)];
    const int to = layout(flow.to_layout).devices[static_cast<size_t>(pair.to)];
    int send = kNoInstruction;
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
    if (send != kNoInstruction) program_.instructions[static_cast<size_t>(send)].match = receive;
    receive_[static_cast<size_t>(f)].At(action.micro, p) = receive;
  }
}

int Linker::GradientAt(int value, int layout) const {
  for (const auto& [at, gradient] : gradient_at_[static_cast<size_t>(value)]) {
    if (at == layout) return gradient;
  }
  return kNoInstruction;
}

void Linker::NeedGradient(int g, int r, int micro) {
  if (program_.gradients[static_cast<size_t>(g)].parts() < 2) return NeedParts(g, r, micro);
  Needs(&sum_[static_cast<size_t>(g)].At(micro, static_cast<size_t>(r)));
}

void Linker::NeedParts(int g, int r, int micro) {
  const Gradient& gradient = program_.gradients[static_cast<size_t>(g)];
  for (const int b : gradient.blocks) Needs(&backward_[static_cast<size_t>(b)].At(micro, static_cast<size_t>(r)));
  for (const int f : gradient.flows) NeedFlow(f, r, micro);
}

void Linker::AddSums(int g, const Action& action) {
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

void Linker::Backward(const Action& action) {
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

void Linker::SendGradient(int input, int from_layout, const Action& action) {
  if (block(value(input).block).layout == from_layout) return;
  const int g = GradientAt(input, from_layout);
  if (--parts_left_[static_cast<size_t>(g)][static_cast<size_t>(action.micro)] > 0) return;
  AddSums(g, action);
  for (const auto& [from, flow] : gradient_flow_[static_cast<size_t>(input)]) {
    if (from == from_layout) Move(flow, action, [&](int r) { NeedGradient(g, r, action.micro); });
  }
}

absl::Status Link(const Lowered& lowered, const Order& order, int64_t max_instructions, Program& program) {
  return Linker(lowered, order, max_instructions, program).Link();
}

}  // namespace medley::program
