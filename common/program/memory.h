// How much memory a program needs on each device. Pure.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/model/forward.h"
#include "common/program/program.h"

namespace medley::program {

struct MemoryOptions {
  int samples = 1;          // of a step
  double state_factor = 3;  // (weights + gradient + optimizer state) / weights: model::Profile
  bool without_undo = false;
};

struct Holder {
  std::string name;  // "activations of fc1..fc2", "parameters of emb"
  double bytes = 0;
};

struct DeviceMemory {
  double peak = 0;
  double at_rest = 0;           // between steps: parameters, their versions and optimizer state
  double left = 0;              // of tensors, when all steps are done: 0
  std::vector<Holder> holders;  // at the peak, largest first
};

// Counts by device, with the instructions of each in the order from which its lists are cut, until the pipeline is full
// and empty again:
//   parameters with gradient and optimizer state; older versions of parameters and optimizer state: those to which a
//   recovery returns, or, with `without_undo`, only those that open steps compute with;
//   tables, on their servers in equal parts, or on their only replica;
//   batches, from LoadBatch to Report;
//   activations (LayerProfile::activation_bytes for the device's pool; without it, the outputs), from the forward to
//   the backward pass; received values, from their Receive to the backward pass that uses them;
//   gradients and their sums, until the last instruction that uses them.
std::vector<DeviceMemory> CountMemory(const Program& program, const model::Model& model, const MemoryOptions& options);

// `memory`: of CountMemory; `capacities`: bytes by device; 0: no limit. Errors: ResourceExhausted, a sentence that
// names the first device that lacks memory and its largest tensors.
absl::Status CheckMemory(const Program& program, const std::vector<DeviceMemory>& memory,
                         const std::vector<double>& capacities);
// The same, counting first.
absl::Status CheckMemory(const Program& program, const model::Model& model, const std::vector<double>& capacities,
                         const MemoryOptions& options);

// "900 MiB", "1.25 GiB".
std::string SizeText(double bytes);

}  // namespace medley::program
