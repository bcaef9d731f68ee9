#include "common/program/memory.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "common/base/quantity.h"
#include "common/base/status.h"
#include "common/model/model.h"
#include "common/program/samples.h"
#include "common/program/text.h"

namespace medley::program {
namespace {

constexpr int kNone = -1;
constexpr size_t kHoldersInSentence = 3;

// What a tensor belongs to, for the sentence: one name for all micro-batches.
struct Owner {
  const char* what = "";
  int block = kNone;
  int value = kNone;
  bool operator<(const Owner& other) const {
    return std::tie(what_order, block, value) < std::tie(other.what_order, other.block, other.value);
  }
  int what_order = 0;
};

class Counter {
 public:
  Counter(const Program& program, const model::Model& model, const MemoryOptions& options)
      : program_(program),
        model_(model),
        options_(options),
        binding_(program, options.samples),
        memory_(program.devices.size()),
        rest_(program.devices.size()) {
    for (const model::Layer& layer : model.layers) names_.push_back(layer.name);
  }

  std::vector<DeviceMemory> Count() {
    CountParameters();
    FindTensors();
    // The first pass finds the moment of each device's peak, the second what holds it.
    std::vector<int64_t> when(memory_.size(), kNone);
    Walk(when, true);
    Walk(when, false);
    return std::move(memory_);
  }

 private:
  struct Tensor {
    double bytes = 0;
    Owner owner;
    int users = 0;  // instructions after which it is free; 0: it is free at the end of the one that makes it
  };

  const Instruction& At(int i) const { return program_.instructions[static_cast<size_t>(i)]; }
  const Layout& LayoutOf(const Block& block) const { return program_.layouts[static_cast<size_t>(block.layout)]; }

  void Rest(int device, const Owner& owner, double bytes) {
    if (bytes > 0) rest_[static_cast<size_t>(device)][owner] += bytes;
  }

  void CountParameters() {
    std::vector<int> servers;  // a shard in a trainer counts as the trainer's
    for (size_t d = 0; d < program_.devices.size(); ++d) {
      const Device& device = program_.devices[d];
      if (device.server) servers.push_back(device.host >= 0 ? device.host : static_cast<int>(d));
    }
    for (int b = 0; b < static_cast<int>(program_.blocks.size()); ++b) {
      const Block& block = program_.blocks[static_cast<size_t>(b)];
      double dense = 0, rows = 0;
      for (int i = block.operations.first; i < block.operations.end; ++i) {
        const model::Layer& layer = model_.layers[static_cast<size_t>(i)];
        (layer.sparse ? rows : dense) += layer.weight_bytes;
      }
      const double factor = program_.Trains() ? options_.state_factor : 1;
      // With undo as many as one member can be ahead of another, else those that open steps compute with.
      const int older = !program_.Trains() ? 0 : options_.without_undo ? block.lag - 1 : program_.lag;
      const double versions = dense * std::max(factor - 1, 1.0) * older;
      for (const int device : LayoutOf(block).devices) {
        Rest(device, {"parameters and optimizer state of", b, kNone, 0}, dense * factor);
        Rest(device, {"older versions of the parameters of", b, kNone, 1}, versions);
        // Replicas that differ keep the last two versions on which they agreed.
        if (block.average >= 0)
          Rest(device, {"agreed versions of the parameters of", b, kNone, 3}, 2 * dense * std::max(factor - 1, 1.0));
        if (servers.empty()) Rest(device, {"tables of", b, kNone, 2}, rows * factor);
      }
      for (const int server : servers) {
        Rest(server, {"tables of", b, kNone, 2}, rows * factor / static_cast<double>(servers.size()));
      }
    }
    for (size_t d = 0; d < memory_.size(); ++d) {
      for (const auto& [owner, bytes] : rest_[d]) memory_[d].at_rest += bytes;
    }
  }

  double ActivationBytes(int block, int device) const {
    const model::OperationRange& range = program_.blocks[static_cast<size_t>(block)].operations;
    const std::string& pool = program_.devices[static_cast<size_t>(device)].pool;
    double bytes = 0;
    for (int i = range.first; i < range.end; ++i) {
      const model::Layer& layer = model_.layers[static_cast<size_t>(i)];
      double own = layer.output_bytes;
      for (const model::LayerProfile& profile : layer.profiles) {
        if (profile.resource_type == pool && profile.activation_bytes > 0) own = profile.activation_bytes;
      }
      bytes += own;
    }
    return bytes;
  }

  // The samples of a step on the device times the bytes of the inputs that its blocks read of them.
  double BatchBytes(int device) const {
    double bytes = 0;
    for (const Block& block : program_.blocks) {
      if (!block.reads_batch) continue;
      const Layout& layout = LayoutOf(block);
      for (int r = 0; r < layout.replicas(); ++r) {
        if (layout.devices[static_cast<size_t>(r)] != device) continue;
        int samples = 0;
        for (int m = 0; m < program_.micro_batches; ++m) samples += binding_.Replica(block.layout, r, m).count;
        for (int i = block.operations.first; i < block.operations.end; ++i) {
          const model::Layer& layer = model_.layers[static_cast<size_t>(i)];
          const bool reads =
              layer.sparse || i == 0 || std::find(layer.inputs.begin(), layer.inputs.end(), -1) != layer.inputs.end();
          if (reads) bytes += layer.input_bytes * samples;
        }
      }
    }
    return bytes;
  }

  double ValueBytes(int value, int count) const {
    return static_cast<double>(program_.values[static_cast<size_t>(value)].bytes_per_sample) * count;
  }

  // The samples that a Receive writes.
  int Received(const Instruction& instruction) const {
    const Flow& flow = program_.flows[static_cast<size_t>(instruction.flow)];
    const std::vector<int>& from = program_.layouts[static_cast<size_t>(flow.from_layout)].devices;
    const auto found = std::find(from.begin(), from.end(), instruction.peer);
    return binding_.Moved(flow, {static_cast<int>(found - from.begin()), instruction.replica}, instruction.micro).count;
  }

  // The tensor that an instruction makes.
  Tensor Made(const Instruction& instruction) const {
    const auto count = [&](int layout) {
      return binding_.Replica(layout, instruction.replica, instruction.micro).count;
    };
    switch (instruction.kind) {
      case Kind::kLoadBatch:
        return {BatchBytes(instruction.device), {"batches", kNone, kNone, 3}, 0};
      case Kind::kForward: {
        const int samples = count(program_.blocks[static_cast<size_t>(instruction.block)].layout);
        return {ActivationBytes(instruction.block, instruction.device) * samples,
                {"activations of", instruction.block, kNone, 4},
                0};
      }
      case Kind::kBackward: {
        const Block& block = program_.blocks[static_cast<size_t>(instruction.block)];
        Tensor tensor{0, {"gradients of the inputs of", instruction.block, kNone, 5}, 0};
        for (const int input : block.inputs) tensor.bytes += ValueBytes(input, count(block.layout));
        return tensor;
      }
      case Kind::kSum: {
        const Gradient& gradient = program_.gradients[static_cast<size_t>(instruction.gradient)];
        return {ValueBytes(gradient.value, count(gradient.layout)), {"the gradient of", kNone, gradient.value, 6}, 0};
      }
      case Kind::kReceive: {
        const Flow& flow = program_.flows[static_cast<size_t>(instruction.flow)];
        return {ValueBytes(flow.value, Received(instruction)),
                {flow.gradient ? "the received gradient of" : "the received output of", kNone, flow.value,
                 flow.gradient ? 8 : 7},
                0};
      }
      default:
        return {};
    }
  }

  // Whether an instruction that needs another uses the tensor that it makes.
  static bool Uses(const Instruction& user, const Instruction& maker) {
    switch (user.kind) {
      case Kind::kForward:
      case Kind::kBackward:
      case Kind::kSum:
      case Kind::kSend:
      case Kind::kReceive:  // a copy
        return maker.device == user.device;
      case Kind::kReport:
        return maker.kind == Kind::kLoadBatch;
      default:
        return false;
    }
  }

  void FindTensors() {
    const size_t count = program_.instructions.size();
    tensors_.resize(count);
    used_.resize(count);
    std::map<std::tuple<int, int, int>, int> backward;  // (block, replica, micro-batch)
    std::vector<int> report(program_.devices.size(), kNone);
    for (int i = 0; i < static_cast<int>(count); ++i) {
      const Instruction& instruction = At(i);
      tensors_[static_cast<size_t>(i)] = Made(instruction);
      if (instruction.kind == Kind::kBackward) {
        backward[{instruction.block, instruction.replica, instruction.micro}] = i;
      }
      if (instruction.kind == Kind::kReport) report[static_cast<size_t>(instruction.device)] = i;
    }
    const auto use = [&](int maker, int user) {
      if (tensors_[static_cast<size_t>(maker)].bytes <= 0 || maker == user) return;
      std::vector<int>& used = used_[static_cast<size_t>(user)];
      if (std::find(used.begin(), used.end(), maker) != used.end()) return;
      used.push_back(maker);
      ++tensors_[static_cast<size_t>(maker)].users;
    };
    for (int i = 0; i < static_cast<int>(count); ++i) {
      const Instruction& user = At(i);
      if (user.kind == Kind::kLoadBatch) use(i, report[static_cast<size_t>(user.device)]);
      for (const Dependency& needs : program_.DependenciesOf(user)) {
        const Instruction& maker = At(needs.instruction);
        if (needs.steps_back != 0 || maker.kind == Kind::kLoadBatch || !Uses(user, maker)) continue;
        // The backward pass uses what the forward pass has used.
        const auto pass =
            user.kind == Kind::kForward ? backward.find({user.block, user.replica, user.micro}) : backward.end();
        use(needs.instruction, pass == backward.end() ? i : pass->second);
      }
    }
  }

  // Executes iterations until the first step has ended on all devices and the last begun has, too.
  void Walk(std::vector<int64_t>& when, bool find) {
    int shift = 0;
    for (const Instruction& instruction : program_.instructions) shift = std::max<int>(shift, instruction.shift);
    const int steps = program_.open_steps + shift + 1;
    std::vector<double> now(memory_.size());
    for (size_t d = 0; d < now.size(); ++d) now[d] = memory_[d].at_rest;
    std::vector<double> most = now;
    std::vector<std::map<Owner, double>> held(find ? 0 : memory_.size());
    for (size_t d = 0; !find && d < held.size(); ++d) {
      held[d] = rest_[d];
      if (when[d] == kNone) Describe(d, held[d]);
    }
    std::vector<int> uses(program_.instructions.size(), 0);  // of a tensor; users repeat them step by step
    const auto change = [&](int maker, int sign) {
      const Tensor& tensor = tensors_[static_cast<size_t>(maker)];
      const auto device = static_cast<size_t>(At(maker).device);
      now[device] += sign * tensor.bytes;
      if (!find) held[device][tensor.owner] += sign * tensor.bytes;
    };
    int64_t moment = 0;
    for (int iteration = 0; iteration < steps + shift; ++iteration) {
      for (int i = 0; i < static_cast<int>(program_.instructions.size()); ++i, ++moment) {
        const int step = iteration - At(i).shift;
        if (step < 0 || step >= steps) continue;
        const Tensor& tensor = tensors_[static_cast<size_t>(i)];
        const auto device = static_cast<size_t>(At(i).device);
        if (tensor.bytes > 0) change(i, 1);
        if (find && now[device] > most[device]) {
          most[device] = now[device];
          when[device] = moment;
        }
        if (!find && when[device] == moment) Describe(device, held[device]);
        if (tensor.bytes > 0 && tensor.users == 0) change(i, -1);
        for (const int maker : used_[static_cast<size_t>(i)]) {
          if (++uses[static_cast<size_t>(maker)] % tensors_[static_cast<size_t>(maker)].users == 0) change(maker, -1);
        }
      }
    }
    for (size_t d = 0; find && d < memory_.size(); ++d) {
      memory_[d].peak = most[d];
      memory_[d].left = now[d] - memory_[d].at_rest;
    }
  }

  void Describe(size_t device, const std::map<Owner, double>& held) {
    for (const auto& [owner, bytes] : held) {
      if (bytes <= 0) continue;
      std::string name = owner.what;
      if (owner.block != kNone) name += " " + BlockName(program_, owner.block, names_);
      if (owner.value != kNone) {
        const int operation = program_.values[static_cast<size_t>(owner.value)].operation;
        name += " " + names_[static_cast<size_t>(operation)];
      }
      memory_[device].holders.push_back({std::move(name), bytes});
    }
    std::stable_sort(memory_[device].holders.begin(), memory_[device].holders.end(),
                     [](const Holder& a, const Holder& b) { return a.bytes > b.bytes; });
  }

  const Program& program_;
  const model::Model& model_;
  const MemoryOptions& options_;
  const Binding binding_;
  std::vector<std::string> names_;
  std::vector<DeviceMemory> memory_;
  std::vector<std::map<Owner, double>> rest_;  // by device: what stays
  std::vector<Tensor> tensors_;                // by the instruction that makes them
  std::vector<std::vector<int>> used_;         // by instruction: makers of the tensors whose use it ends
};

}  // namespace

std::string SizeText(double bytes) {
  constexpr double kStep = 1024;
  if (bytes < kStep) return base::FormatDecimal(bytes, 0) + " B";
  const char* unit = "KiB";
  for (const char* next : {"KiB", "MiB", "GiB", "TiB"}) {
    unit = next;
    bytes /= kStep;
    if (bytes < kStep) break;
  }
  return base::FormatDecimal(bytes, bytes < 10 ? 2 : 1) + " " + unit;
}

std::vector<DeviceMemory> CountMemory(const Program& program, const model::Model& model, const MemoryOptions& options) {
  return Counter(program, model, options).Count();
}

absl::Status CheckMemory(const Program& program, const std::vector<DeviceMemory>& memory,
                         const std::vector<double>& capacities) {
  for (size_t d = 0; d < memory.size() && d < capacities.size(); ++d) {
    if (capacities[d] <= 0 || memory[d].peak <= capacities[d]) continue;
    std::string largest;
    for (size_t h = 0; h < std::min(memory[d].holders.size(), kHoldersInSentence); ++h) {
      const Holder& holder = memory[d].holders[h];
      largest += fmt::format("{}{} ({})", h == 0 ? "" : ", ", holder.name, SizeText(holder.bytes));
    }
    return base::ResourceExhausted("device {} has {} of memory, the plan needs {}; the largest parts are {}",
                                   program.devices[d].id, SizeText(capacities[d]), SizeText(memory[d].peak), largest);
  }
  return absl::OkStatus();
}

absl::Status CheckMemory(const Program& program, const model::Model& model, const std::vector<double>& capacities,
                         const MemoryOptions& options) {
  return CheckMemory(program, CountMemory(program, model, options), capacities);
}

}  // namespace medley::program
