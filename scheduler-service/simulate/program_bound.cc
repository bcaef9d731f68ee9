#include "scheduler-service/simulate/program_bound.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "scheduler-service/simulate/agreeing_part.h"
#include "scheduler-service/simulate/simulate.h"
#include "scheduler-service/simulate/step_work.h"

namespace medley::sched {
namespace {

using program::Instruction;
using program::Kind;
using program::ListKind;
using program::Program;

// Steps whose ends are compared; paths through up to six steps repeat within it.
constexpr int kWindow = 60;

class Bound {
 public:
  Bound(const Program& program, const Durations& durations, int samples)
      : program_(program),
        durations_(durations),
        work_(WorkOfStep(program, durations, samples)),
        agreeing_(AgreeingPart(program, durations, samples)) {}

  absl::StatusOr<ProgramBound> Of() {
    MEDLEY_RETURN_IF_ERROR(Sort());
    out_.path = PathSeconds();
    Lists();
    Cards();
    return std::move(out_);
  }

 private:
  const Instruction& At(size_t i) const { return program_.instructions[i]; }

  // The instructions of a collective start together: one node, the first of them.
  size_t NodeOf(size_t i) const {
    const int collective = work_.collective[i];
    return collective < 0 ? i : first_[static_cast<size_t>(collective)];
  }

  // Orders the nodes so that each follows what it needs of its own step.
  absl::Status Sort() {
    const size_t count = program_.instructions.size();
    members_.resize(work_.collectives.size());
    first_.assign(work_.collectives.size(), count);
    for (size_t i = 0; i < count; ++i) {
      if (work_.collective[i] < 0) continue;
      const auto collective = static_cast<size_t>(work_.collective[i]);
      first_[collective] = std::min(first_[collective], i);
      members_[collective].push_back(i);
    }
    std::vector<int> needs(count, 0);
    std::vector<std::vector<size_t>> next(count);
    size_t nodes = 0;
    for (size_t i = 0; i < count; ++i) {
      const size_t node = NodeOf(i);
      nodes += node == i ? 1 : 0;
      for (const program::Dependency& need : program_.DependenciesOf(At(i))) {
        if (need.steps_back > 0) continue;
        next[NodeOf(static_cast<size_t>(need.instruction))].push_back(node);
        ++needs[node];
      }
    }
    for (size_t i = 0; i < count; ++i) {
      if (NodeOf(i) == i && needs[i] == 0) order_.push_back(i);
    }
    for (size_t done = 0; done < order_.size(); ++done) {
      for (const size_t node : next[order_[done]]) {
        if (--needs[node] == 0) order_.push_back(node);
      }
    }
    if (order_.size() == nodes) return absl::OkStatus();
    return base::Internal("bounding a program: {} of {} instructions wait for one another", nodes - order_.size(),
                          nodes);
  }

  double SecondsOf(size_t i) const {
    const Instruction& instruction = At(i);
    if (instruction.kind == Kind::kSend) return OverRate(work_.bytes[i], work_.rate[i]);
    if (instruction.kind == Kind::kReceive && instruction.match >= 0) {
      return durations_.Link(instruction.peer, instruction.device).latency_seconds;
    }
    return instruction.kind == Kind::kAverage ? agreeing_ * work_.seconds[i] : work_.seconds[i];
  }
  static double OverRate(double bytes, double rate) { return rate > 0 ? bytes / rate : 0; }

  // How much later the steps of a window end than those before it.
  double PathSeconds() const {
    int back = 0;
    for (const program::Dependency& need : program_.all_dependencies) back = std::max(back, need.steps_back);
    const auto kept = static_cast<size_t>(back) + 1;
    std::vector<std::vector<double>> ends(kept, std::vector<double>(program_.instructions.size(), 0));
    std::vector<double> seconds(program_.instructions.size());
    for (size_t i = 0; i < seconds.size(); ++i) {
      // Where replicas agree only after some steps, the others have the shorter path.
      const bool sometimes = At(i).kind == Kind::kAverage && agreeing_ < 1;
      seconds[i] = sometimes ? 0 : SecondsOf(i);
    }
    double before = 0, last = 0;
    for (int step = 0; step < 2 * kWindow; ++step) {
      std::vector<double>& end = ends[static_cast<size_t>(step) % kept];
      last = 0;
      const auto ready = [&](size_t i) {
        double start = 0;
        for (const program::Dependency& need : program_.DependenciesOf(At(i))) {
          if (need.steps_back > step) continue;
          const std::vector<double>& then = ends[static_cast<size_t>(step - need.steps_back) % kept];
          start = std::max(start, then[static_cast<size_t>(need.instruction)]);
        }
        return start;
      };
      for (const size_t node : order_) {
        const int collective = work_.collective[node];
        if (collective < 0) {
          end[node] = ready(node) + seconds[node];
        } else {
          double start = 0;
          for (const size_t member : members_[static_cast<size_t>(collective)]) start = std::max(start, ready(member));
          for (const size_t member : members_[static_cast<size_t>(collective)]) end[member] = start + seconds[node];
        }
        last = std::max(last, end[node]);
      }
      if (step + 1 == kWindow) before = last;
    }
    return (last - before) / kWindow;
  }

  void Offer(double seconds, std::string name) {
    if (seconds <= out_.link) return;
    out_.link = seconds;
    out_.link_name = std::move(name);
  }

  void Lists() {
    for (const program::List& list : program_.lists) {
      double sum = 0;
      for (const int i : list.instructions) sum += SecondsOf(static_cast<size_t>(i));
      const auto device = static_cast<size_t>(list.device);
      const std::string& id = program_.devices[device].id;
      switch (list.kind) {
        case ListKind::kCompute:
          if (!durations_.quotas.empty() && durations_.quotas[device].period > 0) {
            sum *= std::max(1.0, durations_.quotas[device].period / durations_.quotas[device].seconds);
          }
          if (!durations_.least_step_seconds.empty()) sum = std::max(sum, durations_.least_step_seconds[device]);
          if (sum > out_.compute) {
            out_.compute = sum;
            out_.device = id;
          }
          break;
        case ListKind::kSend:
          Offer(sum, fmt::format("messages from {} to {}", id, program_.devices[static_cast<size_t>(list.peer)].id));
          break;
        case ListKind::kReceive:  // latencies, which messages may have at the same time
          break;
        case ListKind::kCollective:
          Offer(sum, "reductions of " + id);
          break;
        case ListKind::kPull:
        case ListKind::kPush:
          Offer(sum, "rows of " + id);
          break;
        case ListKind::kHost:
        case ListKind::kServer:
          Offer(sum, "loading or serving of " + id);
          break;
      }
    }
  }

  std::string MachineName(size_t machine) const {
    for (size_t d = 0; d < program_.devices.size(); ++d) {
      const program::Device& device = program_.devices[d];
      if (durations_.machine[d] == static_cast<int>(machine))
        return device.machine.empty() ? device.id : device.machine;
    }
    return "a machine without devices";
  }

  void Cards() {
    const size_t machines = durations_.card_bytes_per_second.size();
    std::vector<double> out(machines, 0), in(machines, 0);
    const auto add = [&](int from, int to, double bytes) {
      if (from == to) return;
      out[static_cast<size_t>(from)] += bytes;
      in[static_cast<size_t>(to)] += bytes;
    };
    for (size_t i = 0; i < program_.instructions.size(); ++i) {
      if (At(i).kind != Kind::kSend) continue;
      add(durations_.machine[static_cast<size_t>(At(i).device)], durations_.machine[static_cast<size_t>(At(i).peer)],
          work_.bytes[i]);
    }
    for (const StepWork::Load& load : work_.loads) {
      const bool average = work_.collectives[static_cast<size_t>(load.collective)].kind == Kind::kAverage;
      add(load.from, load.to, load.bytes * (average ? agreeing_ : 1));
    }
    for (size_t m = 0; m < machines; ++m) {
      const double rate = durations_.card_bytes_per_second[m];
      Offer(OverRate(out[m], rate), "sent by " + MachineName(m));
      Offer(OverRate(in[m], rate), "received by " + MachineName(m));
    }
  }

  const Program& program_;
  const Durations& durations_;
  const StepWork work_;
  const double agreeing_;                     // part of the steps
  std::vector<size_t> first_;                 // by collective: its first instruction
  std::vector<std::vector<size_t>> members_;  // by collective: its instructions
  std::vector<size_t> order_;                 // of nodes
  ProgramBound out_;
};

}  // namespace

double ProgramBound::seconds() const { return std::max({path, compute, link}); }

absl::StatusOr<ProgramBound> BoundOfProgram(const Program& program, const Durations& durations, int samples) {
  if (samples < 1) return base::InvalidArgument("bounding a program: {} samples a step", samples);
  MEDLEY_RETURN_IF_ERROR(CheckDurations(program, durations));
  return Bound(program, durations, samples).Of();
}

}  // namespace medley::sched
