#include "scheduler-service/simulate/step_work.h"

#include <algorithm>
#include <map>
#include <utility>

#include "common/model/allreduce.h"
#include "common/program/samples.h"

namespace medley::sched {
namespace {

using program::Instruction;
using program::Kind;
using program::ListKind;
using program::Program;

class Work {
 public:
  Work(const Program& program, const Durations& durations, int samples)
      : program_(program), durations_(durations), binding_(program, samples) {}

  StepWork Measure() {
    const size_t count = program_.instructions.size();
    out_.seconds.assign(count, 0);
    out_.processor.assign(count, 0);
    out_.bytes.assign(count, 0);
    out_.rate.assign(count, 0);
    out_.collective.assign(count, -1);
    std::map<std::pair<Kind, int>, int> collectives;
    const std::vector<int> samples = SamplesOfDevices();
    for (size_t i = 0; i < count; ++i) {
      const Instruction& instruction = program_.instructions[i];
      Measure(samples, instruction, i);
      const bool norm = instruction.kind == Kind::kNorm;  // of all devices together
      const bool share = instruction.kind == Kind::kShare;
      if (instruction.kind != Kind::kAllReduce && instruction.kind != Kind::kAverage && !norm && !share) continue;
      const int block = norm ? -1 : share ? instruction.gradient : instruction.block;
      const auto [found, added] =
          collectives.try_emplace({instruction.kind, block}, static_cast<int>(out_.collectives.size()));
      if (added) out_.collectives.push_back({instruction.kind, 0, out_.seconds[i], share ? -1 : block});
      ++out_.collectives[static_cast<size_t>(found->second)].members;
      out_.collective[i] = found->second;
    }
    AddLoads(collectives);
    return std::move(out_);
  }

 private:
  // Whether a collective may use network cards while something else does.
  bool CollectivesShareCards() const {
    int collectives = 0;  // lists of the first device that has one
    int device = -1;
    for (const program::List& list : program_.lists) {
      if (list.kind == ListKind::kSend) return true;
      if (list.kind != ListKind::kCollective) continue;
      if (device == -1) device = list.device;
      collectives += list.device == device ? 1 : 0;
    }
    return collectives > 1 || program_.layouts.size() > 1;
  }

  // The loads of the reductions of gradients and parameters, where they matter.
  void AddLoads(const std::map<std::pair<Kind, int>, int>& collectives) {
    if (durations_.reduction_bytes.empty() || !CollectivesShareCards()) return;
    for (const auto& [what, collective] : collectives) {
      if (what.first == Kind::kNorm || what.first == Kind::kShare) continue;
      const program::Block& block = program_.blocks[static_cast<size_t>(what.second)];
      const program::Group& group =
          program_.groups[static_cast<size_t>(what.first == Kind::kAllReduce ? block.group : block.average)];
      const std::vector<int>& devices = program_.layouts[static_cast<size_t>(group.layout)].devices;
      const auto machine = [&](int replica) {
        return durations_.machine[static_cast<size_t>(devices[static_cast<size_t>(replica)])];
      };
      std::map<std::pair<int, int>, double> bytes;
      const auto b = static_cast<size_t>(what.second);
      double all = durations_.reduction_bytes[b];
      if (what.first == Kind::kAverage && durations_.reductions[b] > 0) {  // with the optimizer's state
        all *= durations_.averages[b] / durations_.reductions[b];
      }
      for (const model::Traffic& traffic : model::TrafficOf(group.levels, all, group.root)) {
        const int from = machine(traffic.from), to = machine(traffic.to);
        if (from != to) bytes[{from, to}] += traffic.bytes;
      }
      StepWork::Collective& own = out_.collectives[static_cast<size_t>(collective)];
      own.first_load = static_cast<int>(out_.loads.size());
      if (own.seconds > 0) {
        for (const auto& [machines, sum] : bytes) {
          out_.loads.push_back({collective, machines.first, machines.second, sum});
        }
      }
      own.end_load = static_cast<int>(out_.loads.size());
    }
  }

  // The samples of a step that each device loads: those of its first block that reads the batch.
  std::vector<int> SamplesOfDevices() const {
    std::vector<int> samples(program_.devices.size(), 0);
    for (const program::Block& block : program_.blocks) {
      if (!block.reads_batch) continue;
      const program::Layout& layout = program_.layouts[static_cast<size_t>(block.layout)];
      for (int r = 0; r < layout.replicas(); ++r) {
        int sum = 0;
        for (int m = 0; m < program_.micro_batches; ++m) sum += binding_.Replica(block.layout, r, m).count;
        int& most = samples[static_cast<size_t>(layout.devices[static_cast<size_t>(r)])];
        most = std::max(most, sum);
      }
    }
    return samples;
  }

  // Fills in what is known of an instruction.
  void Measure(const std::vector<int>& samples, const Instruction& instruction, size_t i) {
    const auto device = static_cast<size_t>(instruction.device);
    const auto passes = [&]() -> const Durations::Passes& {
      return durations_.passes[static_cast<size_t>(instruction.block)][static_cast<size_t>(instruction.replica)];
    };
    const auto own = [&] {
      return binding_
          .Replica(program_.blocks[static_cast<size_t>(instruction.block)].layout, instruction.replica,
                   instruction.micro)
          .count;
    };
    const auto rows = [&] {
      const auto found = durations_.rows.find(instruction.table);
      return found == durations_.rows.end() ? Durations::Rows{} : found->second;
    };
    const auto copy = [&](double bytes) {
      const double rate = durations_.copy_bytes_per_second[device];
      return rate > 0 ? bytes / rate : 0;
    };
    switch (instruction.kind) {
      case Kind::kLoadBatch:
        out_.seconds[i] = durations_.load[device].At(samples[device]);
        break;
      case Kind::kForward:
        out_.seconds[i] = passes().forward.At(own());
        break;
      case Kind::kBackward:
        out_.seconds[i] = passes().backward.At(own());
        break;
      case Kind::kUpdate:
        out_.seconds[i] = passes().update;
        break;
      case Kind::kSum: {
        const program::Gradient& gradient = program_.gradients[static_cast<size_t>(instruction.gradient)];
        const int count = binding_.Replica(gradient.layout, instruction.replica, instruction.micro).count;
        out_.seconds[i] = copy(static_cast<double>(BytesPerSample(gradient.value)) * count * gradient.parts());
        break;
      }
      case Kind::kSend:
        out_.bytes[i] = MovedBytes(instruction);
        out_.rate[i] = RateOf(instruction);
        break;
      case Kind::kReceive:
        if (instruction.peer == instruction.device) {
          out_.seconds[i] = copy(MovedBytes(instruction));
        } else {
          out_.bytes[i] = MovedBytes(instruction);
        }
        break;
      case Kind::kPullRows:
        out_.seconds[i] = rows().pull;
        out_.processor[i] = rows().processor;
        break;
      case Kind::kPushRows:
        out_.seconds[i] = rows().push;
        out_.processor[i] = rows().processor;
        break;
      case Kind::kUpdateRows:
        out_.seconds[i] = rows().update;
        break;
      case Kind::kAllReduce:
        out_.seconds[i] = durations_.reductions[static_cast<size_t>(instruction.block)];
        break;
      case Kind::kAverage:
        out_.seconds[i] = durations_.averages[static_cast<size_t>(instruction.block)];
        break;
      case Kind::kShare:
        if (!durations_.shares.empty()) out_.seconds[i] = durations_.shares[static_cast<size_t>(instruction.gradient)];
        break;
      case Kind::kNorm:
      case Kind::kReport:
        break;
    }
  }
  int64_t BytesPerSample(int value) const { return program_.values[static_cast<size_t>(value)].bytes_per_sample; }
  double MovedBytes(const Instruction& instruction) const {
    const program::Flow& flow = program_.flows[static_cast<size_t>(instruction.flow)];
    const auto index = [&](int layout, int device) {
      const std::vector<int>& devices = program_.layouts[static_cast<size_t>(layout)].devices;
      return static_cast<int>(std::find(devices.begin(), devices.end(), device) - devices.begin());
    };
    const bool send = instruction.kind == Kind::kSend;
    const program::Pair pair{send ? instruction.replica : index(flow.from_layout, instruction.peer),
                             send ? index(flow.to_layout, instruction.peer) : instruction.replica};
    return static_cast<double>(BytesPerSample(flow.value)) * binding_.Moved(flow, pair, instruction.micro).count;
  }
  double RateOf(const Instruction& send) const {
    if (!durations_.flow_bytes_per_second.empty()) {
      const double rate = durations_.flow_bytes_per_second[static_cast<size_t>(send.flow)];
      if (rate > 0) return rate;
    }
    return durations_.Link(send.device, send.peer).bytes_per_second;
  }

  const Program& program_;
  const Durations& durations_;
  const program::Binding binding_;
  StepWork out_;
};

}  // namespace

StepWork WorkOfStep(const Program& program, const Durations& durations, int samples) {
  return Work(program, durations, samples).Measure();
}

}  // namespace medley::sched
