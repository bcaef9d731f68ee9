// What the agent knows of a question (HeteroG, section 4.1.1). Pure.
//
// All numbers are relative to the question, so that the same weights serve other graphs, batches and clusters, and no
// width depends on the number of devices: what concerns one device is in rows of its own.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler-service/devices/problem.h"
#include "scheduler-service/graph/grouping.h"

namespace medley::reproductions::heterog {

inline constexpr int kOperationWidth = 14;
inline constexpr int kGroupWidth = 8;
inline constexpr int kTwins = 8;
inline constexpr int kDeviceWidth = 6 + kTwins;
inline constexpr int kPairWidth = 3;

// Tables by row.
struct AgentFeatures {
  int64_t operations = 0, groups = 0, devices = 0;
  // For each operation, in this order: seconds on the mean device; those on the fastest and on the slowest over it; the
  // part of the seconds before it; bytes of parameters, the part of them before it, whether it has any; bytes of its
  // output and of its inputs; seconds to send its output over the mean and over the fastest link, and its parameters
  // over the mean link; the number of inputs; its place in the graph.
  std::vector<float> operation;
  // Edges: an operation and what it uses, in both directions, and each operation with itself.
  std::vector<int64_t> from, to;
  std::vector<int64_t> group_of;  // by operation
  // For each group: its parts of the operations, the seconds, the parameters and the outputs; of the whole question,
  // the same in every row: the number of devices, seconds of all parameters over the mean link, the spread of the
  // devices.
  std::vector<float> group;
  // For each device: power over the mean and over the largest, memory over that of one replica, seconds per byte of its
  // network card over the mean, the part of the devices in its machine and of its pool; and which of the devices of its
  // pool it is, modulo kTwins, as 0 and 1: equal devices must differ in something, or groups could not be on different
  // ones.
  std::vector<float> device;
  // For each group on each device: seconds over the mean and over those of the whole model on the mean device, bytes
  // over the device's memory.
  std::vector<float> pair;
};

AgentFeatures FeaturesOfGraph(const sched::DeviceProblem& problem, const sched::OperationGroups& groups);

}  // namespace medley::reproductions::heterog
