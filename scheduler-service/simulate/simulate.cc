#include "scheduler-service/simulate/simulate.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <queue>
#include <utility>

#include "common/base/status.h"
#include "common/program/samples.h"
#include "common/program/text.h"
#include "scheduler-service/simulate/agreeing_part.h"
#include "scheduler-service/simulate/network.h"
#include "scheduler-service/simulate/quotas.h"
#include "scheduler-service/simulate/step_work.h"

namespace medley::sched {
namespace {

using program::Instruction;
using program::Kind;
using program::ListKind;
using program::Program;

constexpr int kNone = -1;
constexpr int kMostRounds = 16;  // of a reduction, as simulated
constexpr double kRounding = 1e-9;

class Run {
 public:
  Run(const Program& program, const Durations& durations, const SimulationOptions& options)
      : program_(program), durations_(durations), options_(options), quotas_(durations.quotas) {}

  absl::StatusOr<Simulation> Simulate() {
    Prepare();
    for (int l = 0; l < static_cast<int>(lists_.size()); ++l) ready_.push_back(l);
    Settle(0);
    for (int64_t count = 0; !events_.empty(); ++count) {
      if (count % 4096 == 0 && options_.stop.stop_requested()) return base::Cancelled("simulating was stopped");
      const Event event = events_.top();
      events_.pop();
      if (event.message) {
        if (!network_->End(event.id, event.version, event.time, changes_)) continue;
        Reschedule();
        const auto load = event.id - static_cast<int>(program_.instructions.size());
        if (load < 0) {
          MessageLeft(event.id, event.time);
        } else {
          LoadLeft(joints_[static_cast<size_t>(work_.loads[static_cast<size_t>(load)].collective)], event.time);
        }
      } else {
        if (lists_[static_cast<size_t>(event.id)].version != event.version) continue;
        ListEnds(event.id, event.time);
      }
      Settle(event.time);
    }
    for (const ListState& list : lists_) {
      if (list.iteration < iterations_) {
        return base::Internal("simulating: the lists wait for one another; {} never starts",
                              program::Text(program_, At(list.Current()), {}));
      }
    }
    Summarise();
    return std::move(out_);
  }

 private:
  struct ListState {
    const program::List* list = nullptr;
    int iteration = 0;
    size_t position = 0;
    int dependency = 0;  // those before it are done
    int next_waiter = kNone;
    int version = 0;  // of the event that ends the current instruction
    double start = 0;
    double end = 0;
    int Current() const { return list->instructions[position]; }
  };
  struct Event {
    double time = 0;
    int64_t order = 0;
    int id = 0;  // list or message (the Send)
    int version = 0;
    bool message = false;
    bool operator<(const Event& other) const {  // the earliest is on top
      return time != other.time ? time > other.time : order > other.order;
    }
  };
  // A collective of which some members wait, or that is moving.
  struct Joint {
    std::vector<int> waiting;  // lists
    int moving = 0;            // loads whose bytes have not left
    double end = 0;            // at the earliest
  };

  const Instruction& At(int i) const { return program_.instructions[static_cast<size_t>(i)]; }

  void Prepare() {
    const size_t count = program_.instructions.size();
    done_.assign(count, 0);
    waiter_.assign(count, kNone);
    arrival_.assign(count, 0);
    sender_.assign(count, kNone);
    work_ = WorkOfStep(program_, durations_, options_.samples);
    joints_.resize(work_.collectives.size());
    int shift = 0;
    for (const Instruction& instruction : program_.instructions) shift = std::max<int>(shift, instruction.shift);
    network_.emplace(durations_.card_bytes_per_second, static_cast<int>(count + work_.loads.size()));
    for (const program::List& list : program_.lists) {
      lists_.push_back({.list = &list});
      if (list.instructions.empty()) lists_.back().iteration = options_.steps + shift;
    }
    compute_.assign(program_.devices.size(), kNone);
    cpu_free_.assign(program_.devices.size(), 0);
    for (size_t l = 0; l < program_.lists.size(); ++l) {
      const program::List& list = program_.lists[l];
      if (list.kind == ListKind::kCompute) compute_[static_cast<size_t>(list.device)] = static_cast<int>(l);
      for (const int i : list.instructions) {
        if (At(i).kind == Kind::kSend) sender_[static_cast<size_t>(i)] = static_cast<int>(l);
      }
    }
    agreeing_ = AgreeingPart(program_, durations_, options_.samples);
    shift_ = shift;
    iterations_ = options_.steps + shift;
    out_.step_end.assign(static_cast<size_t>(options_.steps), 0);
    out_.busy.assign(program_.devices.size(), 0);
  }

  // Lets all lists go on that can, at `now`.
  void Settle(double now) {
    while (!ready_.empty()) {
      const int list = ready_.back();
      ready_.pop_back();
      Advance(list, now);
    }
  }

  // Starts the instruction at the head of a list, or lets the list wait for a dependency.
  void Advance(int l, double now) {
    ListState& list = lists_[static_cast<size_t>(l)];
    while (list.iteration < iterations_) {
      const int i = list.Current();
      const Instruction& instruction = At(i);
      const int step = list.iteration - instruction.shift;
      if (step < 0 || step >= options_.steps) {
        Next(list);
        continue;
      }
      for (; list.dependency < instruction.dependencies; ++list.dependency) {
        const program::Dependency& needs =
            program_.all_dependencies[static_cast<size_t>(instruction.first_dependency + list.dependency)];
        if (done_[static_cast<size_t>(needs.instruction)] > step - needs.steps_back) continue;
        list.next_waiter = waiter_[static_cast<size_t>(needs.instruction)];
        waiter_[static_cast<size_t>(needs.instruction)] = l;
        return;
      }
      list.start = now;
      const bool left_out = instruction.kind == Kind::kAverage && !Agrees(step);
      if (!left_out && !Start(l, list, i, instruction, now)) return;
      Done(l, list, i, step, now);
    }
  }

  // Whether replicas that differ average their parameters after the step: as evenly as the fraction allows.
  bool Agrees(int step) const {
    return std::floor((step + 1) * agreeing_ + kRounding) > std::floor(step * agreeing_ + kRounding);
  }

  // False if the instruction ends later.
  bool Start(int l, ListState& list, int i, const Instruction& instruction, double now) {
    const auto index = static_cast<size_t>(i);
    switch (instruction.kind) {
      case Kind::kSend: {
        TakeCpu(instruction.device, MessageCpu(instruction.device, work_.bytes[index]), now);
        network_->Start(i, durations_.machine[static_cast<size_t>(instruction.device)],
                        durations_.machine[static_cast<size_t>(instruction.peer)], work_.bytes[index],
                        work_.rate[index], now, changes_);
        Reschedule();
        return false;
      }
      case Kind::kReceive:
        if (instruction.match != kNone) {
          const double arrived = std::max(now, arrival_[static_cast<size_t>(instruction.match)]);
          EndAt(l, list, TakeCpu(instruction.device, MessageCpu(instruction.device, work_.bytes[index]), arrived));
          return false;
        }
        break;
      case Kind::kAllReduce:
      case Kind::kShare:
      case Kind::kNorm:
      case Kind::kAverage: {
        const auto number = static_cast<size_t>(work_.collective[index]);
        const StepWork::Collective& collective = work_.collectives[number];
        Joint& joint = joints_[number];
        joint.waiting.push_back(l);
        if (static_cast<int>(joint.waiting.size()) < collective.members) return false;
        joint.end = std::max(now + collective.seconds, SpendTogether(collective, joint, now));
        for (const int member : joint.waiting) lists_[static_cast<size_t>(member)].start = now;
        joint.moving = collective.end_load - collective.first_load;
        if (joint.moving == 0) {
          EndJoint(joint, joint.end);
          return false;
        }
        for (int id = collective.first_load; id < collective.end_load; ++id) {
          const StepWork::Load& load = work_.loads[static_cast<size_t>(id)];
          network_->Start(static_cast<int>(program_.instructions.size()) + id, load.from, load.to, load.bytes,
                          load.bytes / collective.seconds, now, changes_);
        }
        Reschedule();
        return false;
      }
      default:
        break;
    }
    const double seconds = work_.seconds[index];
    if (seconds <= 0) return true;
    if (list.list->kind == ListKind::kCompute) {
      const double begin = std::max(now, cpu_free_[static_cast<size_t>(instruction.device)]);
      EndAt(l, list, quotas_.Spend(instruction.device, begin, seconds));
    } else {
      EndAt(l, list, std::max(now + seconds, TakeCpu(instruction.device, work_.processor[index], now)));
    }
    return false;
  }

  void EndJoint(Joint& joint, double end) {
    for (const int member : joint.waiting) EndAt(member, lists_[static_cast<size_t>(member)], end);
    joint.waiting.clear();
  }
  void LoadLeft(Joint& joint, double now) {
    if (--joint.moving == 0) EndJoint(joint, std::max(joint.end, now));
  }

  void EndAt(int l, ListState& list, double end) {
    list.end = end;
    events_.push({end, order_++, l, ++list.version, false});
  }
  void Reschedule() {
    for (const Network::Change& change : changes_) {
      events_.push({change.end, order_++, change.id, change.version, true});
    }
    changes_.clear();
  }

  double MessageCpu(int device, double bytes) const {
    if (durations_.message_cpu.empty()) return 0;
    const Durations::MessageCpu& cost = durations_.message_cpu[static_cast<size_t>(device)];
    return cost.per_message + cost.per_byte * bytes;
  }
  // Takes processor time of one core from the computation of the device that runs then, or else from the next. Returns
  // when it has been spent.
  double TakeCpu(int device, double seconds, double now) {
    const double cores = durations_.cores[static_cast<size_t>(device)];
    if (cores <= 0 || seconds <= 0) return now;
    seconds /= cores;
    const int l = compute_[static_cast<size_t>(device)];
    if (l != kNone && lists_[static_cast<size_t>(l)].end > now) {
      EndAt(l, lists_[static_cast<size_t>(l)], quotas_.Spend(device, lists_[static_cast<size_t>(l)].end, seconds));
      return quotas_.Runs(device, now) + seconds;
    }
    double& free = cpu_free_[static_cast<size_t>(device)];
    return free = quotas_.Spend(device, std::max(free, now), seconds);
  }

  // The processor time of a reduction on its members. They need each other round by round, so one that its quota holds
  // up holds up the others. Returns when all have spent it.
  double SpendTogether(const StepWork::Collective& collective, const Joint& joint, double now) {
    if (collective.block == kNone || durations_.reduction_cpu_seconds.empty()) return now;
    const std::vector<double>& seconds = durations_.reduction_cpu_seconds[static_cast<size_t>(collective.block)];
    if (std::ranges::max(seconds) <= 0) return now;
    const int rounds = HasQuotas() ? std::min(2 * (collective.members - 1), kMostRounds) : 1;
    for (int round = 0; round < rounds; ++round) {
      double end = now;
      for (const int member : joint.waiting) {
        const Instruction& own = At(lists_[static_cast<size_t>(member)].Current());
        end = std::max(end, TakeCpu(own.device, seconds[static_cast<size_t>(own.replica)] / rounds, now));
      }
      now = end;
    }
    return now;
  }
  bool HasQuotas() const { return !durations_.quotas.empty(); }

  void MessageLeft(int send, double now) {
    const Instruction& instruction = At(send);
    arrival_[static_cast<size_t>(send)] = now + durations_.Link(instruction.device, instruction.peer).latency_seconds;
    ListEnds(sender_[static_cast<size_t>(send)], now);
  }

  void ListEnds(int l, double now) {
    ListState& list = lists_[static_cast<size_t>(l)];
    const int i = list.Current();
    Done(l, list, i, list.iteration - At(i).shift, now);
    ready_.push_back(l);
  }

  // The current instruction of a list is done; wakes the lists that wait for it.
  void Done(int l, ListState& list, int i, int step, double now) {
    ++done_[static_cast<size_t>(i)];
    ++out_.instructions;
    if (list.list->kind == ListKind::kCompute) out_.busy[static_cast<size_t>(list.list->device)] += now - list.start;
    if (At(i).kind == Kind::kReport) {
      double& end = out_.step_end[static_cast<size_t>(step)];
      end = std::max(end, now);
    }
    out_.total_seconds = std::max(out_.total_seconds, now);
    if (options_.max_spans > 0 && step >= options_.first_span_step) {
      if (static_cast<int64_t>(out_.spans.size()) < options_.max_spans) {
        out_.spans.push_back({l, i, step, list.start, now});
      } else {
        out_.spans_left_out = true;
      }
    }
    for (int w = std::exchange(waiter_[static_cast<size_t>(i)], kNone); w != kNone;) {
      ready_.push_back(w);
      w = std::exchange(lists_[static_cast<size_t>(w)].next_waiter, kNone);
    }
    Next(list);
  }
  static void Next(ListState& list) {
    list.dependency = 0;
    if (++list.position < list.list->instructions.size()) return;
    list.position = 0;
    ++list.iteration;
  }

  void Summarise() {
    // Between the ends of two steps, without the first, which fill the pipeline, and the last, which drain it.
    const int first = program_.open_steps, last = options_.steps - 1 - shift_;
    if (last > first) {
      out_.seconds_per_step =
          (out_.step_end[static_cast<size_t>(last)] - out_.step_end[static_cast<size_t>(first)]) / (last - first);
    } else {
      out_.seconds_per_step = out_.total_seconds / options_.steps;
    }
    for (const double least : durations_.least_step_seconds) {
      out_.seconds_per_step = std::max(out_.seconds_per_step, least);
    }
  }

  const Program& program_;
  const Durations& durations_;
  const SimulationOptions& options_;
  std::optional<Network> network_;  // messages by their Send, then loads
  Quotas quotas_;
  std::vector<Network::Change> changes_;
  std::vector<int> done_;        // by instruction: steps; its list executes steps in their order
  std::vector<int> waiter_;      // by instruction: the first list that waits for it
  std::vector<double> arrival_;  // by Send: of its newest message
  std::vector<int> sender_;      // by Send: its list
  StepWork work_;
  std::vector<Joint> joints_;  // by collective
  std::vector<ListState> lists_;
  std::vector<int> compute_;      // by device: its compute list
  std::vector<double> cpu_free_;  // by device: until then, processor time is taken
  std::vector<int> ready_;        // lists that may go on
  std::priority_queue<Event> events_;
  int64_t order_ = 0;
  int shift_ = 0;
  int iterations_ = 0;
  double agreeing_ = 1;  // part of the steps
  Simulation out_;
};

}  // namespace

absl::StatusOr<Simulation> Simulate(const Program& program, const Durations& durations,
                                    const SimulationOptions& options) {
  if (options.samples < 1) return base::InvalidArgument("simulating: {} samples a step", options.samples);
  if (options.steps < 1) return base::InvalidArgument("simulating: {} steps", options.steps);
  const auto count = static_cast<int64_t>(program.instructions.size());
  if (count > 0 && options.steps > kMaxSimulated / count) {
    return base::ResourceExhausted("simulating {} steps of {} instructions: at most {} instructions are simulated",
                                   options.steps, count, kMaxSimulated);
  }
  MEDLEY_RETURN_IF_ERROR(CheckDurations(program, durations));
  return Run(program, durations, options).Simulate();
}

}  // namespace medley::sched
