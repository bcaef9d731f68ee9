#include "common/program/lists.h"

#include <map>
#include <tuple>
#include <utility>

namespace medley::program {
namespace {

ListKind ListOf(const Instruction& instruction) {
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

}  // namespace

void CutLists(Program& program) {
  std::map<std::tuple<int, ListKind, int>, List> lists;
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& instruction = program.instructions[i];
    const ListKind kind = ListOf(instruction);
    int peer = kind == ListKind::kSend || kind == ListKind::kReceive ? instruction.peer : -1;
    if (instruction.kind == Kind::kAllReduce) peer = program.ServerOf(instruction.block);
    List& list = lists[{instruction.device, kind, peer}];
    list.kind = kind;
    list.device = instruction.device;
    list.peer = peer;
    list.instructions.push_back(static_cast<int>(i));
  }
  for (auto& [key, list] : lists) program.lists.push_back(std::move(list));
}

}  // namespace medley::program
