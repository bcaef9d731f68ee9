#include "common/program/text.h"

#include <fmt/format.h>

#include "common/base/hasher.h"

namespace medley::program {
namespace {

const char* FormName(Form form) {
  switch (form) {
    case Form::kSync1F1B:
      return "SYNC_1F1B";
    case Form::kGPipe:
      return "GPIPE";
    case Form::kAsync1F1B:
      return "ASYNC_1F1B";
    case Form::kOrdered:
      return "ORDERED";
    case Form::kEvaluate:
      return "EVALUATE";
  }
  return "";
}

const char* AlgorithmName(model::AllreduceAlgorithm algorithm) {
  switch (algorithm) {
    case model::AllreduceAlgorithm::kAuto:
      return "auto";
    case model::AllreduceAlgorithm::kCentralized:
      return "centralized";
    case model::AllreduceAlgorithm::kRing:
      return "ring";
    case model::AllreduceAlgorithm::kRecursiveDoubling:
      return "recursive doubling";
    case model::AllreduceAlgorithm::kLinear:
      return "linear";
  }
  return "";
}

std::string OperationName(int operation, const std::vector<std::string>& names) {
  return static_cast<size_t>(operation) < names.size() ? names[static_cast<size_t>(operation)]
                                                       : std::to_string(operation);
}

std::string GroupName(const Program& program, int index) {
  const Group& group = program.groups[static_cast<size_t>(index)];
  const Layout& layout = program.layouts[static_cast<size_t>(group.layout)];
  std::string text;
  for (const ReduceLevel& level : group.levels) {
    text += fmt::format("{}{}", text.empty() ? "" : ", then ", AlgorithmName(level.algorithm));
    for (const std::vector<int>& members : level.groups) {
      text += " {";
      for (size_t i = 0; i < members.size(); ++i) {
        const int device = layout.devices[static_cast<size_t>(members[i])];
        text += fmt::format("{}{}", i == 0 ? "" : " ", program.devices[static_cast<size_t>(device)].id);
      }
      text += "}";
    }
  }
  return text;
}

std::string Micro(const Instruction& instruction) {
  std::string text = instruction.micro < 0 ? "" : fmt::format(" m{}", instruction.micro);
  if (instruction.shift > 0) text += fmt::format(" -{}", instruction.shift);
  return text;
}

}  // namespace

std::string ListName(const Program& program, const List& list) {
  const auto peer = [&] { return program.devices[static_cast<size_t>(list.peer)].id; };
  switch (list.kind) {
    case ListKind::kHost:
      return "host";
    case ListKind::kCompute:
      return "compute";
    case ListKind::kCollective:
      return list.peer < 0 ? "collective" : "served by " + peer();
    case ListKind::kSend:
      return "to " + peer();
    case ListKind::kReceive:
      return "from " + peer();
    case ListKind::kPull:
      return "pull";
    case ListKind::kPush:
      return "push";
    case ListKind::kServer:
      return "server";
  }
  return "";
}

std::string BlockName(const Program& program, int block, const std::vector<std::string>& names) {
  const model::OperationRange& range = program.blocks[static_cast<size_t>(block)].operations;
  if (range.end - range.first == 1) return OperationName(range.first, names);
  return fmt::format("{}..{}", OperationName(range.first, names), OperationName(range.end - 1, names));
}

std::string Text(const Program& program, const Instruction& instruction, const std::vector<std::string>& names) {
  const auto block = [&] { return BlockName(program, instruction.block, names); };
  const auto flow = [&] {
    const Flow& moved = program.flows[static_cast<size_t>(instruction.flow)];
    return (moved.gradient ? "d" : "") +
           OperationName(program.values[static_cast<size_t>(moved.value)].operation, names);
  };
  const std::string micro = Micro(instruction);
  switch (instruction.kind) {
    case Kind::kLoadBatch:
      return "LoadBatch" + micro;
    case Kind::kForward:
      return "F " + block() + micro;
    case Kind::kBackward:
      return "B " + block() + micro;
    case Kind::kSum: {
      const int value = program.gradients[static_cast<size_t>(instruction.gradient)].value;
      return "Sum d" + OperationName(program.values[static_cast<size_t>(value)].operation, names) + micro;
    }
    case Kind::kSend:
      return "Send " + flow() + micro;
    case Kind::kReceive:
      return (instruction.peer == instruction.device ? "Copy " : "Receive ") + flow() + micro;
    case Kind::kPullRows:
      return "PullRows " + OperationName(instruction.table, names) + micro;
    case Kind::kPushRows:
      return "PushRows " + OperationName(instruction.table, names) + micro;
    case Kind::kUpdateRows:
      return "UpdateRows " + OperationName(instruction.table, names) + micro;
    case Kind::kAllReduce:
      return "AllReduce " + block() + micro;
    case Kind::kShare:
      return "Share " + program.shared[static_cast<size_t>(instruction.gradient)].name + micro;
    case Kind::kNorm:
      return "Norm" + micro;
    case Kind::kUpdate:
      return "Update " + block() + micro;
    case Kind::kAverage:
      return "Average " + block() + micro;
    case Kind::kReport:
      return "Report" + micro;
  }
  return "";
}

std::string Text(const Program& program, const std::vector<std::string>& names) {
  std::string text = fmt::format("{}, {} micro-batches, {} open steps, {} instructions\n", FormName(program.form),
                                 program.micro_batches, program.open_steps, program.instructions.size());
  for (size_t b = 0; b < program.blocks.size(); ++b) {
    const Block& block = program.blocks[b];
    text += fmt::format("block {}, layout {}, parameters of {} steps before",
                        BlockName(program, static_cast<int>(b), names), block.layout, block.lag);
    if (block.group >= 0) text += "\n  gradients: " + GroupName(program, block.group);
    if (block.average >= 0) text += "\n  average: " + GroupName(program, block.average);
    text += '\n';
  }
  for (size_t l = 0; l < program.layouts.size(); ++l) {
    const Layout& layout = program.layouts[l];
    text += fmt::format("layout {}:", l);
    for (int r = 0; r < layout.replicas(); ++r) {
      text += fmt::format(" {} {:.4g}", program.devices[static_cast<size_t>(layout.devices[static_cast<size_t>(r)])].id,
                          layout.cuts[static_cast<size_t>(r) + 1] - layout.cuts[static_cast<size_t>(r)]);
    }
    text += '\n';
  }
  int device = -1;
  for (const List& list : program.lists) {
    if (list.device != device) {
      device = list.device;
      text += program.devices[static_cast<size_t>(device)].id + '\n';
    }
    text += fmt::format("  {}:", ListName(program, list));
    for (size_t i = 0; i < list.instructions.size(); ++i) {
      text +=
          (i == 0 ? " " : ", ") + Text(program, program.instructions[static_cast<size_t>(list.instructions[i])], names);
    }
    text += '\n';
  }
  return text;
}

std::string Hash(const Program& program) {
  base::Hasher hasher;
  const auto add = [&](auto... numbers) {
    const int64_t values[] = {static_cast<int64_t>(numbers)...};
    hasher.Add({reinterpret_cast<const char*>(values), sizeof values});
  };
  hasher.Add(Text(program, std::vector<std::string>{}));
  for (const Layout& layout : program.layouts) {
    for (const double cut : layout.cuts) hasher.Add({reinterpret_cast<const char*>(&cut), sizeof cut});
  }
  for (const Value& value : program.values) add(value.operation, value.bytes_per_sample);
  for (const Group& group : program.groups) add(group.root);
  for (const Instruction& instruction : program.instructions) {
    add(instruction.kind, instruction.device, instruction.match, instruction.dependencies);
    for (const Dependency& dependency : program.DependenciesOf(instruction)) {
      add(dependency.instruction, dependency.steps_back);
    }
  }
  return hasher.Hex();
}

}  // namespace medley::program
