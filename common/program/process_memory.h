// What the processes of a job need of the memory of their machines, by role, from the shapes of the model. Pure.
//
// memory.h counts the tensors of a plan on its devices. A process needs more: its program, the rows of the data, copies
// that it makes for checkpoints and evaluations. The numbers were measured (docs/design/memory.md): for models without
// operations from PyTorch an estimate is 0.85 to 1.1 times the peak of resident memory. What PyTorch keeps between its
// own passes is not known, so there it is less.
#pragma once

#include <absl/status/status.h>

#include <string>
#include <vector>

#include "common/model/model.h"
#include "common/model/table_place.h"
#include "common/program/memory.h"
#include "common/program/program.h"

namespace medley::program {

struct ProcessMemory {
  double bytes = 0;           // at most, at the same time
  double unsure = 0;          // of these, what some processes do without
  std::vector<Holder> parts;  // which add up to `bytes`, largest first
};

struct ProcessOptions {
  MemoryOptions tensors;
  bool torch = false;    // the program that loads LibTorch
  double rows = 0;       // of the training data, which every trainer reads
  double row_bytes = 0;  // model::SampleBytes
  // Rows that take more are in a file of samples, of which the kernel keeps what it has memory for: none is needed.
  // Without a disk for it they are in memory, so that up to so many bytes are in the estimate, but not sure. 0: all
  // rows are in memory.
  double most_row_bytes = 0;
  // For rows of tables in each process that keeps rows; what takes more is on its disk. 0: all are in memory.
  double row_budget = 0;
};

// The attribute of a table's layer with the number of its rows that the training data use; the profiler counts them.
inline constexpr char kUsedRows[] = "usedRows";

// For each device of the program, trainers and parameter servers. Servers create a row of a table when it is first
// used: those of kUsedRows count, or without it as many as the data can use at most, as unsure. With `on_gpu[d]` the
// device computes on a GPU: it keeps its activations there, and surely no parameters here.
std::vector<ProcessMemory> MemoryOfMembers(const Program& program, const model::Model& model,
                                           const ProcessOptions& options, const std::vector<bool>& on_gpu = {});

// What the devices with `on_gpu[d]` need of their GPU's memory; others nothing. A GPU holds weights, optimizer state,
// the versions of both, gradients and activations (docs/adr/0098-a-device-owns-its-parameters.md), and of tables the
// rows that a step uses, of which the most count as unsure. So do activations of models from PyTorch, and CUDA's own
// memory. `tables[d]` says which tables, or how large a cache, the device has besides.
std::vector<ProcessMemory> MemoryOfGpus(const Program& program, const model::Model& model,
                                        const ProcessOptions& options, const std::vector<bool>& on_gpu,
                                        const std::vector<model::Tables>& tables = {});

// For a process that measures the operations of the model one after the other.
ProcessMemory MemoryOfProfiler(const model::Model& model, const ProcessOptions& options);

// It handles messages, and writes the model that results, one parameter after the other.
ProcessMemory MemoryOfCoordinator(const model::Model& model, const ProcessOptions& options);

// The bytes below which the process surely fails: what is sure of the estimate, less its error and the pages of the
// program's file, which the kernel can drop. So nothing is refused that runs.
double LeastMemory(const ProcessMemory& memory, bool torch);
// The same of a GPU.
double LeastGpuMemory(const ProcessMemory& memory);
// What is left of `limit` beside a trainer's program and data, by the same rule. At least 1, because 0 means no limit;
// 0 for a limit of 0.
double RoomForTensors(double limit, const ProcessOptions& options);

// The same beside a parameter server's program.
double RoomForRows(double limit);
// The bytes of the rows that the data use of tables, over state_factor times those of all tables; 0: there are none, or
// a layer has no kUsedRows.
double TableShare(const model::Model& model, const ProcessOptions& options);

// Lowers the bytes of the tables so that planners, which count state_factor times as many, count `row_budget` at most
// for all tables together. 0 changes nothing.
void CapTables(double row_budget, double state_factor, model::Model& model);

// "1.2 GiB: parameters, gradients and optimizer state of fc1..fc3 (900 MiB), ..." with at most four parts.
std::string InWords(const ProcessMemory& memory);

}  // namespace medley::program
