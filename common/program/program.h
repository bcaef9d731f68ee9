// A program: what every process of a plan does in every step, as ordered lists of instructions.
//
// `Compile` makes it from a plan and a model alone, so equal inputs give equal programs on every machine. The worker's
// executor runs it, the simulator times it. Immutable; pure values in flat arrays, indices instead of pointers.
//
// Each device has several lists. The lists are repeated: in iteration i, an instruction works for step i - shift, and
// is left out when that step does not exist. A list is executed in its order, an instruction when its dependencies are
// done. Because all lists are cut from one order over all devices, they cannot wait in a circle (check.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/model/operation_range.h"
#include "common/model/reduce_level.h"
#include "common/model/sync.h"

namespace medley::program {

enum class Kind : uint8_t {
  kLoadBatch,   // host: this device's share of the step's samples
  kForward,     // compute: a block, for one micro-batch
  kBackward,    // compute
  kSum,         // compute: adds the gradients of a value that several blocks or flows give; `gradient`
  kSend,        // send: this device's samples of a flow that the peer needs
  kReceive,     // receive: the peer's samples, written into their place; peer == device: a copy, in the compute list
  kPullRows,    // pull: the distinct rows of a table that the step uses
  kPushRows,    // push: their gradients
  kUpdateRows,  // server: applies the gradients of all replicas
  kAllReduce,   // collective: sums the gradients of a block over `group`
  kUpdate,      // compute: writes the next version of a block's parameters
  kAverage,     // collective: averages parameters and optimizer state over `group`, in steps that agree
  kReport,      // host: everything of the step is done here
  kShare,       // collective: adds the gradients of a parameter that blocks of several devices have; `gradient`
  kNorm,        // collective: sums the squares of the gradients of all devices, by which updates clip them
};

// A channel between two devices has one list at each end and in each direction, so that no message waits for one that
// goes the other way. A device has one list of collectives for each replica that serves its gradients (Group::served),
// and one for all other collectives.
enum class ListKind : uint8_t { kHost, kCompute, kCollective, kSend, kReceive, kPull, kPush, kServer };
// The schedules, by the generator that orders the instructions (one file each).
enum class Form : uint8_t { kSync1F1B, kGPipe, kAsync1F1B, kOrdered, kEvaluate };

struct Device {
  std::string id;
  std::string pool;
  std::string machine;  // empty: its own
  std::string location;
  bool server = false;  // a parameter server; after all others
  int host = -1;        // of a server that lives in the process of a trainer: that device
};

// The replicas of neighbouring operations, and the part of every micro-batch that each takes: replica r takes the
// samples from cuts[r] to cuts[r + 1], as fractions of it.
struct Layout {
  std::vector<int> devices;
  std::vector<double> cuts;
  int replicas() const { return static_cast<int>(devices.size()); }
  bool operator==(const Layout&) const = default;
};

// Neighbouring operations of one layout whose parameters are reduced and updated together.
struct Block {
  model::OperationRange operations;
  int layout = 0;
  int segment = 0;           // blocks of one segment follow each other on the same devices
  int lag = 1;               // a step computes with the parameters of `lag` steps before
  int group = -1;            // of the gradients' reduction; -1: one replica, or no dense parameters
  int average = -1;          // of the average of parameters; -1: replicas never differ
  bool dense = false;        // has parameters outside of tables
  bool reads_batch = false;  // features or labels
  bool loss = false;
  std::vector<int> inputs;   // values of other blocks that it uses
  std::vector<int> outputs;  // its values that other blocks use
  std::vector<int> tables;   // operations with embedding tables
};

// The output of an operation that another block uses.
struct Value {
  int operation = 0;
  int block = 0;
  int64_t bytes_per_sample = 0;
  std::vector<int> consumers;  // blocks, ascending
  std::vector<int> flows;      // forward; one for each other layout of its consumers
};

// The samples from replica `from` of one layout that replica `to` of another needs.
struct Pair {
  int from = 0;
  int to = 0;
};

// A value (or, backward, its gradient) that moves from one layout to another.
struct Flow {
  int value = 0;
  bool gradient = false;
  int from_layout = 0;
  int to_layout = 0;
  std::vector<Pair> pairs;  // ordered by `from`, then `to`
};

// The gradient of a value within one layout, as the sum of these parts. With one part there is nothing to add.
struct Gradient {
  int value = 0;
  int layout = 0;
  std::vector<int> blocks;  // consumers in this layout
  std::vector<int> flows;   // from other layouts; only in the layout of the producer
  int parts() const { return static_cast<int>(blocks.size() + flows.size()); }
};

using model::ReduceLevel;  // by replica index

// The most replicas whose gradients one of them serves; with more, the root adds in a collective.
inline constexpr int kMaxServed = 256;

// The replicas of a layout that reduce together.
struct Group {
  int layout = 0;
  std::vector<ReduceLevel> levels;  // innermost first
  int root = 0;                     // replica index, for kCentralized
  // The root is a parameter server of dense gradients: its reductions do not wait for those of others. One level with
  // one group of at most kMaxServed.
  bool served = false;
};

// A parameter that several operations have, such as the tied weights of a language model: its gradient is the sum of
// those of all its holders, of which each has a copy. All copies are updated alike.
struct Shared {
  std::string name;
  int64_t floats = 0;
  std::vector<int> blocks;  // that hold it, ascending
  int group = -1;           // over their devices; -1: one device
};

struct Instruction {
  Kind kind = Kind::kReport;
  uint16_t shift = 0;
  int32_t device = 0;
  int32_t block = -1;     // kForward, kBackward, kAllReduce, kUpdate, kAverage; the block of a table
  int32_t micro = -1;     // micro-batch; -1: once a step
  int32_t replica = -1;   // this device's index in the layout of the block, flow or gradient
  int32_t flow = -1;      // kSend, kReceive
  int32_t gradient = -1;  // kSum; kShare: the index in Program::shared
  int32_t peer = -1;      // kSend, kReceive: the other device
  int32_t match = -1;     // kSend, kReceive: the other's instruction; -1 for a copy
  int32_t table = -1;     // kPullRows, kPushRows, kUpdateRows: operation
  int32_t first_dependency = 0;
  int32_t dependencies = 0;
};

// The instruction of the step `steps_back` before. It may be one of another device: then the message, the collective or
// the server ensures it.
struct Dependency {
  int32_t instruction = 0;
  int32_t steps_back = 0;
  bool operator==(const Dependency&) const = default;
};

struct List {
  ListKind kind = ListKind::kHost;
  int32_t device = 0;
  int32_t peer = -1;  // kSend, kReceive; kCollective: the device that serves, -1: none
  std::vector<int32_t> instructions;
};

struct Program {
  Form form = Form::kSync1F1B;
  int micro_batches = 1;
  int lag = 1;         // the largest of all blocks
  int open_steps = 2;  // steps that a device may have begun and not ended
  model::Sync sync;    // mode, fraction, target ratio and detector of all placements
  std::vector<Device> devices;
  std::vector<Layout> layouts;
  std::vector<Block> blocks;  // in topological order
  std::vector<Value> values;
  std::vector<Flow> flows;
  std::vector<Gradient> gradients;
  std::vector<Group> groups;
  std::vector<Shared> shared;
  bool clips = false;                     // by the norm of the gradients of all blocks: kNorm
  int norm_group = -1;                    // over the devices with dense parameters; -1: one device, or nothing clips
  std::vector<Instruction> instructions;  // in the order from which the lists are cut
  std::vector<Dependency> all_dependencies;
  std::vector<List> lists;  // by device, then kind, then peer

  std::span<const Dependency> DependenciesOf(const Instruction& instruction) const {
    return std::span(all_dependencies)
        .subspan(static_cast<size_t>(instruction.first_dependency), static_cast<size_t>(instruction.dependencies));
  }
  bool Trains() const { return form != Form::kEvaluate; }
  // The device that serves the gradients of a block; -1: none.
  int ServerOf(int block) const {
    const int index = blocks[static_cast<size_t>(block)].group;
    if (index < 0 || !groups[static_cast<size_t>(index)].served) return -1;
    const Group& group = groups[static_cast<size_t>(index)];
    return layouts[static_cast<size_t>(group.layout)].devices[static_cast<size_t>(group.root)];
  }
};

// Largest programs; a plan that needs more is refused.
inline constexpr int64_t kMaxInstructions = 4'000'000;

}  // namespace medley::program
