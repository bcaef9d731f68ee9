// Executes a program over a toy model: every list of every device in its order, an instruction when its dependencies
// are done, in a random interleaving. Buffers are those of `open_steps` steps; each number knows of which step it is,
// so a buffer that is overwritten too early, or read too early, is an error.
#pragma once

#include <cmath>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "common/program/program.h"
#include "common/program/samples.h"
#include "common/program/text.h"
#include "tests/unit/common/program/toy_model.h"

namespace medley::program::toy {

struct Cell {
  int step = -1;
  double value = std::nan("");
};

class Interpreter {
 public:
  Interpreter(const Program& program, const std::vector<Op>& ops, int count, bool adagrad, uint64_t seed)
      : program_(program), ops_(ops), binding_(program, count), count_(count), adagrad_(adagrad), random_(seed) {
    for (int b = 0; b < static_cast<int>(program.blocks.size()); ++b) {
      const Block& block = At(program.blocks, b);
      for (int r = 0; r < LayoutOf(b).replicas(); ++r) {
        auto& state = dense_[{b, r}][-1];
        for (int i = block.operations.first; i < block.operations.end; ++i) state.push_back(Initial(i));
      }
      for (const int table : block.tables) {
        for (int row = 0; row < kRows; ++row) rows_[table][-1].push_back(Initial(table, row));
      }
    }
    for (int i = 0; i < static_cast<int>(program.instructions.size()); ++i) {
      const Instruction& one = At(program.instructions, i);
      if (one.kind == Kind::kAllReduce || one.kind == Kind::kAverage) ranks_[{one.kind, one.block}][one.replica] = i;
    }
    for (size_t d = 0; d < program.devices.size(); ++d) servers_ += program.devices[d].server ? 1 : 0;
  }

  // Executes steps [first, end) from a drain to the next; false when it is stuck or reads what is not there: `error()`.
  bool Run(int first, int end, const std::set<int>& agrees) {
    first_ = first;
    end_ = end;
    agrees_ = &agrees;
    done_.assign(program_.instructions.size(), first - 1);
    heads_.assign(program_.lists.size(), {first, 0});
    std::vector<size_t> open(program_.lists.size());
    for (size_t l = 0; l < open.size(); ++l) open[l] = l;
    std::vector<size_t> waiting;
    while (error_.empty()) {
      for (size_t i = 0; i < open.size();) {
        if (Settle(open[i])) {
          ++i;
        } else {
          open[i] = open.back();
          open.pop_back();
        }
      }
      if (open.empty()) return true;
      std::shuffle(open.begin(), open.end(), random_);
      bool any = false;
      for (const size_t l : open) {
        if (!Settle(l)) continue;  // a collective ended the list
        int times = 1 + static_cast<int>(random_() % 3 == 0 ? random_() % 40 : 0);
        while (times-- > 0 && error_.empty() && Settle(l) && TryHead(l)) any = true;
      }
      if (!any && error_.empty()) {
        error_ = "stuck:";
        for (const size_t l : open) {
          if (Settle(l)) error_ += "\n  " + Name(HeadOf(l)) + " step " + std::to_string(StepOf(l));
        }
      }
    }
    return false;
  }

  const std::string& error() const { return error_; }
  double loss(int step) { return loss_[step] / count_; }
  const std::vector<Weights>& Dense(int block, int replica, int step) { return dense_.at({block, replica}).at(step); }
  const std::vector<Weights>& Rows(int table, int step) { return rows_.at(table).at(step); }
  void CopyState(const Interpreter& from, int step) {
    for (auto& [key, versions] : dense_) {
      for (int b = 0; b < static_cast<int>(from.program_.blocks.size()); ++b) {
        const Block& source = At(from.program_.blocks, b);
        const Block& target = At(program_.blocks, key.first);
        for (int i = source.operations.first; i < source.operations.end; ++i) {
          if (!target.operations.Contains(i)) continue;
          const int here = At(target.layout, program_).devices[static_cast<size_t>(key.second)];
          const Layout& layout = At(source.layout, from.program_);
          for (int r = 0; r < layout.replicas(); ++r) {
            if (layout.devices[static_cast<size_t>(r)] != here || !source.dense) continue;
            versions[-1][static_cast<size_t>(i - target.operations.first)] =
                from.dense_.at({b, r}).at(step)[static_cast<size_t>(i - source.operations.first)];
          }
        }
      }
    }
    for (auto& [table, versions] : rows_) versions[-1] = from.rows_.at(table).at(step);
    latest_ = -1;
    evaluating_ = true;
  }

 private:
  template <typename T>
  static const T& At(const std::vector<T>& all, int i) {
    return all[static_cast<size_t>(i)];
  }
  static const Layout& At(int layout, const Program& program) { return At(program.layouts, layout); }
  const Layout& LayoutOf(int block) const { return At(program_.layouts, At(program_.blocks, block).layout); }
  const Instruction& One(int i) const { return At(program_.instructions, i); }
  std::string Name(int i) const { return Text(program_, One(i), {}) + " on " + At(program_.devices, One(i).device).id; }

  // A list's position: the iteration and the index of its next instruction. Skips steps that do not exist.
  struct Head {
    int iteration = 0;
    size_t index = 0;
  };
  int HeadOf(size_t l) const { return program_.lists[l].instructions[heads_[l].index]; }
  int StepOf(size_t l) const { return heads_[l].iteration - One(HeadOf(l)).shift; }
  bool Settle(size_t l) {
    const List& list = program_.lists[l];
    Head& head = heads_[l];
    while (head.iteration < end_ + program_.open_steps + 1) {
      for (; head.index < list.instructions.size(); ++head.index) {
        const int step = StepOf(l);
        if (step >= first_ && step < end_) return true;
      }
      ++head.iteration;
      head.index = 0;
    }
    return false;
  }

  bool Met(int i, int step) const {
    for (const Dependency& need : program_.DependenciesOf(One(i))) {
      const int wanted = step - need.steps_back;
      if (wanted >= first_ && done_[static_cast<size_t>(need.instruction)] < wanted) return false;
    }
    return true;
  }

  bool TryHead(size_t l) {
    const int i = HeadOf(l), step = StepOf(l);
    if (!Met(i, step)) return false;
    const Instruction& one = One(i);
    if (one.kind == Kind::kAllReduce || one.kind == Kind::kAverage) return TryCollective(i, step);
    if (one.kind == Kind::kReceive && one.peer != one.device) {
      auto& mail = mail_[{one.peer, one.device}];
      if (mail.empty()) return false;
      if (mail.front().match != i || mail.front().step != step) {
        return Fail("a message for another instruction", i, step);
      }
      message_ = std::move(mail.front().data);
      mail.pop_front();
    }
    Execute(one, i, step);
    done_[static_cast<size_t>(i)] = step;
    ++heads_[l].index;
    return true;
  }

  bool Fail(const std::string& what, int i, int step) {
    if (error_.empty()) error_ = what + ": " + Name(i) + " step " + std::to_string(step);
    return false;
  }

  std::set<int> Component(const Group& group, int replica) const {
    std::set<int> all = {replica};
    for (size_t before = 0; before != all.size();) {
      before = all.size();
      for (const ReduceLevel& level : group.levels) {
        for (const std::vector<int>& members : level.groups) {
          bool meets = false;
          for (const int r : members) meets |= all.contains(r);
          if (meets) all.insert(members.begin(), members.end());
        }
      }
    }
    return all;
  }

  // Runs when all members have it at the head of their lists, as collectives do.
  bool TryCollective(int i, int step) {
    const Instruction& one = One(i);
    const Block& block = At(program_.blocks, one.block);
    const Group& group = At(program_.groups, one.kind == Kind::kAllReduce ? block.group : block.average);
    const std::set<int> members = Component(group, one.replica);
    std::vector<size_t> lists;
    for (const int r : members) {
      const auto& ranks = ranks_.at({one.kind, one.block});
      if (!ranks.contains(r)) return Fail("a member has no such instruction", i, step);
      const int other = ranks.at(r);
      size_t found = program_.lists.size();
      for (size_t l = 0; l < program_.lists.size(); ++l) {
        if (program_.lists[l].kind != ListKind::kCollective || program_.lists[l].device != One(other).device) continue;
        if (Settle(l) && HeadOf(l) == other && StepOf(l) == step && Met(other, step)) found = l;
      }
      if (found == program_.lists.size()) return false;
      lists.push_back(found);
    }
    if (one.kind == Kind::kAllReduce) {
      std::vector<double> sum(static_cast<size_t>(block.operations.end - block.operations.first) * 2, 0);
      for (const int r : members) {
        const auto& mine = gradients_[{one.block, r, Slot(step)}];
        if (mine.first != step) return Fail("reduces gradients of another step", i, step);
        for (size_t k = 0; k < sum.size(); ++k) sum[k] += mine.second[k];
      }
      for (const int r : members) gradients_[{one.block, r, Slot(step)}].second = sum;
    } else if (agrees_->contains(step)) {
      std::vector<Weights> mean(static_cast<size_t>(block.operations.end - block.operations.first),
                                Weights{0, 0, 0, 0});
      const auto n = static_cast<double>(members.size());
      for (const int r : members) {
        const std::vector<Weights>& mine = dense_.at({one.block, r}).at(step);
        for (size_t k = 0; k < mean.size(); ++k) {
          mean[k].w += mine[k].w / n;
          mean[k].b += mine[k].b / n;
          mean[k].w_squares += mine[k].w_squares / n;
          mean[k].b_squares += mine[k].b_squares / n;
        }
      }
      for (const int r : members) dense_[{one.block, r}][step] = mean;
    }
    for (const size_t l : lists) {
      done_[static_cast<size_t>(HeadOf(l))] = step;
      ++heads_[l].index;
    }
    return true;
  }

  int Slot(int step) const { return step % program_.open_steps; }

  // A buffer of one number a sample of the batch. Places: the output and the sum of inputs of an operation; the
  // gradient of a value, as a whole, or the part that a block or a flow gives.
  enum class Place { kOutput, kInput, kSum, kBlock, kFlow };
  std::vector<Cell>& Buffer(int device, int layout, Place place, int index, int part, int step) {
    auto& buffer = buffers_[{device, layout, place, index, part, Slot(step)}];
    if (buffer.empty()) buffer.resize(static_cast<size_t>(count_) + 1);
    return buffer;
  }
  double Read(const std::vector<Cell>& buffer, int sample, int i, int step) {
    const Cell& cell = buffer[static_cast<size_t>(sample)];
    if (cell.step != step) Fail("reads what is not there (of step " + std::to_string(cell.step) + ")", i, step);
    return cell.value;
  }

  SampleRange Samples(int layout, int replica, int micro) const {
    SampleRange range = binding_.Replica(layout, replica, micro);
    range.first += binding_.Micro(micro).first;
    return range;
  }

  void Execute(const Instruction& one, int i, int step) {
    switch (one.kind) {
      case Kind::kLoadBatch:
        loaded_[{one.device, Slot(step)}] = step;
        return;
      case Kind::kForward:
        return Forward(one, i, step);
      case Kind::kBackward:
        return Backward(one, i, step);
      case Kind::kSum: {
        const Gradient& gradient = At(program_.gradients, one.gradient);
        const SampleRange range = Samples(gradient.layout, one.replica, one.micro);
        for (int s = range.first; s < range.end(); ++s) {
          Buffer(one.device, gradient.layout, Place::kSum, gradient.value, -1, step)[static_cast<size_t>(s)] = {
              step, SumOfParts(one.device, gradient, s, i, step)};
        }
        return;
      }
      case Kind::kSend:
      case Kind::kReceive:
        return Move(one, i, step);
      case Kind::kPullRows:
        return Pull(one, i, step);
      case Kind::kPushRows:
        return Push(one, i, step);
      case Kind::kUpdateRows:
        ApplyRows(one.table, At(program_.blocks, one.block).lag, one.device - FirstServer(), servers_, i, step);
        return;
      case Kind::kUpdate:
        return Update(one, i, step);
      case Kind::kAllReduce:
      case Kind::kShare:
      case Kind::kNorm:
      case Kind::kAverage:
      case Kind::kReport:
        return;
    }
  }

  int FirstServer() const { return static_cast<int>(program_.devices.size()) - servers_; }
  int Version(int block, int step) const {
    return evaluating_ ? latest_ : std::max(first_ - 1, step - At(program_.blocks, block).lag);
  }

  double SumOfParts(int device, const Gradient& gradient, int sample, int i, int step) {
    double sum = 0;
    for (const int b : gradient.blocks) {
      sum += Read(Buffer(device, gradient.layout, Place::kBlock, gradient.value, b, step), sample, i, step);
    }
    for (const int f : gradient.flows) {
      sum += Read(Buffer(device, gradient.layout, Place::kFlow, gradient.value, f, step), sample, i, step);
    }
    return sum;
  }
  double GradientOf(int device, int value, int layout, int sample, int i, int step) {
    for (const Gradient& gradient : program_.gradients) {
      if (gradient.value != value || gradient.layout != layout) continue;
      if (gradient.parts() == 1) return SumOfParts(device, gradient, sample, i, step);
      return Read(Buffer(device, layout, Place::kSum, value, -1, step), sample, i, step);
    }
    Fail("no gradient", i, step);
    return 0;
  }

  const Weights& WeightsOf(const Instruction& one, const Block& block, int op, int sample, int i, int step) {
    static const Weights none;
    if (At(ops_, op).kind == OpKind::kTable) {
      const auto& [of, rows] = pulled_[{one.device, op, Slot(step)}];
      if (of != step) Fail("rows of another step", i, step);
      return of != step ? none : rows[static_cast<size_t>(Row(op, step, sample))];
    }
    const auto& versions = dense_.at({one.block, one.replica});
    const auto found = versions.find(block.dense ? Version(one.block, step) : -1);
    if (found == versions.end()) {
      Fail("a version that does not exist", i, step);
      return none;
    }
    return found->second[static_cast<size_t>(op - block.operations.first)];
  }

  void NeedBatch(const Instruction& one, const Block& block, int i, int step) {
    if (block.reads_batch && loaded_[{one.device, Slot(step)}] != step) Fail("the batch is of another step", i, step);
  }

  void Forward(const Instruction& one, int i, int step) {
    const Block& block = At(program_.blocks, one.block);
    const SampleRange range = Samples(block.layout, one.replica, one.micro);
    NeedBatch(one, block, i, step);
    for (int s = range.first; s < range.end(); ++s) {
      for (int op = block.operations.first; op < block.operations.end; ++op) {
        double z = 0;
        for (const int input : At(ops_, op).inputs) {
          z += input < 0 ? Feature(step, s)
                         : Read(Buffer(one.device, block.layout, Place::kOutput, input, -1, step), s, i, step);
        }
        const double y = Output(At(ops_, op), WeightsOf(one, block, op, s, i, step), z);
        Buffer(one.device, block.layout, Place::kInput, op, -1, step)[static_cast<size_t>(s)] = {step, z};
        Buffer(one.device, block.layout, Place::kOutput, op, -1, step)[static_cast<size_t>(s)] = {step, y};
        if (At(ops_, op).terminal) loss_[step] += (y - Label(step, s)) * (y - Label(step, s)) / 2;
      }
    }
  }

  void Backward(const Instruction& one, int i, int step) {
    const Block& block = At(program_.blocks, one.block);
    const SampleRange range = Samples(block.layout, one.replica, one.micro);
    NeedBatch(one, block, i, step);
    auto& [of, sums] = gradients_[{one.block, one.replica, Slot(step)}];
    const int n = block.operations.end - block.operations.first;
    if (one.micro == 0) {
      of = step;
      sums.assign(static_cast<size_t>(n) * 2, 0);
      for (const int table : block.tables) row_gradients_[{one.device, table, Slot(step)}] = {step, {}};
    }
    if (of != step) Fail("adds to gradients of another step", i, step);
    for (int s = range.first; s < range.end(); ++s) {
      std::map<int, double> gradient, parts;  // by operation
      for (const int v : block.outputs) {
        gradient[At(program_.values, v).operation] += GradientOf(one.device, v, block.layout, s, i, step);
      }
      for (int op = block.operations.end - 1; op >= block.operations.first; --op) {
        if (At(ops_, op).terminal) {
          gradient[op] +=
              Read(Buffer(one.device, block.layout, Place::kOutput, op, -1, step), s, i, step) - Label(step, s);
        }
        const double z = Read(Buffer(one.device, block.layout, Place::kInput, op, -1, step), s, i, step);
        const Derivatives d = Derive(At(ops_, op), WeightsOf(one, block, op, s, i, step), z, gradient[op]);
        for (const int input : At(ops_, op).inputs) {
          if (input >= 0) (block.operations.Contains(input) ? gradient : parts)[input] += d.z;
        }
        const size_t k = static_cast<size_t>(op - block.operations.first) * 2;
        if (At(ops_, op).kind == OpKind::kTable) {
          row_gradients_[{one.device, op, Slot(step)}].second[Row(op, step, s)] += d.w;
        } else {
          sums[k] += d.w;
          sums[k + 1] += d.b;
        }
      }
      for (const int v : block.inputs) {
        Buffer(one.device, block.layout, Place::kBlock, v, one.block, step)[static_cast<size_t>(s)] = {
            step, parts[At(program_.values, v).operation]};
      }
    }
  }

  void Move(const Instruction& one, int i, int step) {
    const Flow& flow = At(program_.flows, one.flow);
    const bool sends = one.kind == Kind::kSend;
    const int from = sends ? one.device : one.peer, to = sends ? one.peer : one.device;
    for (const Pair& pair : flow.pairs) {
      if (At(program_.layouts, flow.from_layout).devices[static_cast<size_t>(pair.from)] != from) continue;
      if (At(program_.layouts, flow.to_layout).devices[static_cast<size_t>(pair.to)] != to) continue;
      SampleRange range = binding_.Moved(flow, pair, one.micro);
      range.first += binding_.Micro(one.micro).first;
      std::vector<double> data;
      if (sends || from == to) {
        for (int s = range.first; s < range.end(); ++s) {
          data.push_back(flow.gradient ? GradientOf(from, flow.value, flow.from_layout, s, i, step)
                                       : Read(Buffer(from, flow.from_layout, Place::kOutput,
                                                     At(program_.values, flow.value).operation, -1, step),
                                              s, i, step));
        }
      } else {
        data = message_;
      }
      if (sends) {
        mail_[{from, to}].push_back({one.match, step, std::move(data)});
        continue;
      }
      if (data.size() != static_cast<size_t>(range.count)) Fail("a message of another size", i, step);
      for (size_t k = 0; k < data.size(); ++k) {
        auto& buffer = flow.gradient ? Buffer(to, flow.to_layout, Place::kFlow, flow.value, one.flow, step)
                                     : Buffer(to, flow.to_layout, Place::kOutput,
                                              At(program_.values, flow.value).operation, -1, step);
        buffer[static_cast<size_t>(range.first) + k] = {step, data[k]};
      }
    }
  }

  void Pull(const Instruction& one, int i, int step) {
    if (loaded_[{one.device, Slot(step)}] != step) Fail("the batch is of another step", i, step);
    const int version = Version(one.block, step);
    if (!rows_[one.table].contains(version)) return void(Fail("rows that do not exist", i, step));
    if (servers_ > 0 && applied_[{one.table, version}] != servers_ && version >= first_) {
      Fail("rows that not all servers have updated", i, step);
    }
    pulled_[{one.device, one.table, Slot(step)}] = {step, rows_[one.table][version]};
  }
  void Push(const Instruction& one, int i, int step) {
    auto& [of, rows] = row_gradients_[{one.device, one.table, Slot(step)}];
    if (of != step) Fail("pushes gradients of another step", i, step);
    for (const auto& [row, gradient] : rows) pushed_[{one.table, step}][row] += gradient;
    if (servers_ == 0) ApplyRows(one.table, 1, 0, 1, i, step);
  }
  void ApplyRows(int table, int /*lag*/, int server, int servers, int i, int step) {
    if (!rows_[table].contains(step - 1)) return void(Fail("updates before the step before", i, step));
    if (!rows_[table].contains(step)) rows_[table][step] = rows_[table][step - 1];
    for (int row = server; row < kRows; row += servers) {
      Weights& weights = rows_[table][step][static_cast<size_t>(row)];
      weights = rows_[table][step - 1][static_cast<size_t>(row)];
      Apply(weights, pushed_[{table, step}][row] / count_, 0, adagrad_);
    }
    ++applied_[{table, step}];
  }

  void Update(const Instruction& one, int i, int step) {
    const Block& block = At(program_.blocks, one.block);
    const auto& [of, sums] = gradients_[{one.block, one.replica, Slot(step)}];
    auto& versions = dense_[{one.block, one.replica}];
    if (of != step || !versions.contains(step - 1)) return void(Fail("updates with another step's", i, step));
    double n = count_;
    if (block.average >= 0) {
      std::set<int> members = {one.replica};
      if (block.group >= 0) members = Component(At(program_.groups, block.group), one.replica);
      n = 0;
      for (const int r : members) {
        for (int m = 0; m < program_.micro_batches; ++m) n += binding_.Replica(block.layout, r, m).count;
      }
      n = std::max(n, 1.0);
    }
    std::vector<Weights> next = versions.at(step - 1);
    for (size_t k = 0; k < next.size(); ++k) Apply(next[k], sums[2 * k] / n, sums[2 * k + 1] / n, adagrad_);
    versions[step] = next;
    versions.erase(step - block.lag - 1);
  }

  struct Message {
    int match = 0;
    int step = 0;
    std::vector<double> data;
  };

  const Program& program_;
  const std::vector<Op>& ops_;
  const Binding binding_;
  const int count_;
  const bool adagrad_;
  std::mt19937_64 random_;
  int servers_ = 0;
  int first_ = 0, end_ = 0;
  bool evaluating_ = false;
  int latest_ = -1;
  const std::set<int>* agrees_ = nullptr;
  std::vector<int> done_;  // by instruction: the last step
  std::vector<Head> heads_;
  std::vector<double> message_;
  std::string error_;
  std::map<std::pair<Kind, int>, std::map<int, int>> ranks_;                            // (kind, block): replica
  std::map<std::pair<int, int>, std::map<int, std::vector<Weights>>> dense_;            // (block, replica): version
  std::map<int, std::map<int, std::vector<Weights>>> rows_;                             // table: version
  std::map<std::pair<int, int>, int> applied_;                                          // (table, version)
  std::map<std::pair<int, int>, std::map<int, double>> pushed_;                         // (table, step): row
  std::map<std::tuple<int, int, int>, std::pair<int, std::vector<Weights>>> pulled_;    // (device, table, slot)
  std::map<std::tuple<int, int, int>, std::pair<int, std::vector<double>>> gradients_;  // (block, replica, slot)
  std::map<std::tuple<int, int, int>, std::pair<int, std::map<int, double>>> row_gradients_;
  std::map<std::tuple<int, int, Place, int, int, int>, std::vector<Cell>> buffers_;
  std::map<std::pair<int, int>, int> loaded_;
  std::map<std::pair<int, int>, std::deque<Message>> mail_;  // (from, to)
  std::map<int, double> loss_;
};

}  // namespace medley::program::toy
