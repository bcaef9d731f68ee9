// Divides an exported program into operations, as fine as the user says. Pure; no torch.
//
//   Program -> Divide -> Cut: operations in topological order, each a list of nodes; what passes between them
//
// A value that passes from one operation to another ("crossing") is cut along the batch when replicas and micro-batches
// exchange it, so it must be a tensor of numbers with one axis of the batch. Where it is not, where several operations
// would share parts of a parameter or a statistic, or where one would change another's memory, the operations are
// merged. Values that follow from integer inputs and constants alone (masks, positions) are computed again by each
// operation that needs them.
// An embedding that can be a table of rows (tables.h) is an operation of its own, perhaps with calls that follow it and
// have no parameters, unless the depth is 0.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "worker/cut/expression.h"
#include "worker/exported/program.h"

namespace medley::worker::cut {

// At most one of these is not empty: job spec.model.cut.
struct Options {
  int depth = 1;                     // components of the module path that name an operation; 0: all is one operation
  std::vector<std::string> modules;  // paths, each of which is one operation; what lies between them forms others
  bool finest = false;               // every ATen call is an operation
  std::string output;                // the result that the loss takes, by name or number; empty: the only one
};

struct Crossing {
  std::string value;
  int operation = 0;   // that computes it
  int axis = 0;        // of the batch
  int64_t floats = 0;  // per sample
  exported::ScalarType type = exported::ScalarType::kFloat32;
};

struct Operation {
  std::string name;            // module path, or a part of it: "encoder.layers.0"; unique
  std::string kind;            // of the module: "Linear"; "Mixed" for several
  std::vector<int> nodes;      // indices into Program::nodes, ascending
  std::vector<int> inputs;     // operations whose crossings it takes, ascending
  std::vector<int> crossings;  // indices into Cut::crossings that it computes, in the order in which they are packed
  // Trained parameters, frozen ones and statistics, by their names in the module. A parameter that several operations
  // use (tied weights) is in all of them, by its first name.
  std::vector<std::string> owned;
  std::vector<std::string> batch;  // inputs of the model that it reads, by argument
  std::string table;               // the only one of `owned`, where it is a table of rows (tables.h); else empty
  std::string table_rows;          // then the input of the model whose numbers are its rows
  int64_t output_floats = 0;       // per sample, of all crossings
  int64_t activation_floats = 0;   // per sample, of all results of nodes
  double flops = 0;                // of the forward pass per sample
};

struct Cut {
  std::shared_ptr<const exported::Program> program;
  std::string batch;        // the symbol
  exported::Range samples;  // that the program accepts in a micro-batch
  std::vector<Operation> operations;
  std::vector<Crossing> crossings;
  std::string result;                   // the value that the loss takes: the last operation's only crossing
  int64_t result_floats = 0;            // per sample
  std::vector<std::string> statistics;  // buffers that training changes, by name
  // The name of a parameter that is the same tensor as another one, to the name of the first of them, by which
  // operations own it.
  std::map<std::string, std::string> shared;
  std::vector<std::string> warnings;  // for the user: what was merged, and why
  std::vector<std::string> removed;   // for the user: what an export after eval() has removed (modes.h)
};

// Errors: InvalidArgument for a fixed batch (with the Python call that makes it symbolic), symbols other than the
// batch, sizes that follow from data, a path that names no module, no or several outputs, an output without a batch, a
// folded batch norm.
absl::StatusOr<Cut> Divide(std::shared_ptr<const exported::Program> program, const Options& options);

// The sizes of a tensor, or the value of a symbolic number, for so many samples.
absl::StatusOr<std::vector<int64_t>> SizesOf(const Cut& cut, const std::string& value, int64_t samples);
absl::StatusOr<int64_t> NumberOf(const Cut& cut, const std::string& value, int64_t samples);

}  // namespace medley::worker::cut
