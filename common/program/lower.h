// Brings a plan to one form: devices, layouts, and for each operation its layout and synchronisation. Behind it nobody
// knows stages. Pure.
#pragma once

#include <absl/status/statusor.h>

#include <vector>

#include "common/model/forward.h"
#include "common/model/operation_range.h"
#include "common/model/sync.h"
#include "common/program/program.h"

namespace medley::program {

// What one operation needs of the plan and the model.
struct Operation {
  std::vector<int> inputs;     // operations whose output it uses, ascending
  std::vector<int> consumers;  // ascending
  bool reads_batch = false;    // features or labels
  int layout = 0;
  int sync = 0;             // index into Lowered::syncs
  bool table = false;       // embedding rows, on parameter servers or the only replica
  int64_t dense_bytes = 0;  // of parameters
};

// Neighbouring operations of one layout.
struct Segment {
  model::OperationRange operations;
  int layout = 0;
  int depth = 0;  // of the longest path of segments that leads to it
};

struct Lowered {
  std::vector<Device> devices;  // trainers, then servers
  std::vector<Layout> layouts;
  std::vector<Operation> operations;
  std::vector<model::Sync> syncs;
  std::vector<Segment> segments;  // in topological order
  int depth = 1;                  // the number of different depths
  int trainers = 0;               // devices before the servers
};

// A layer's inputs; an empty list means the layer before, and -1 in it the batch. Errors: InvalidArgument for an input
// that does not come before its consumer. Checks the plan (model::Validate), and refuses what no generator makes a
// program of (Unimplemented): each error names the field.
absl::StatusOr<Lowered> Lower(const model::ExecutionPlan& plan, const model::Model& model);

}  // namespace medley::program
