// Execution plans of the forms that planners of this goal search. Pure.
#pragma once

#include <string>
#include <vector>

#include "common/model/allreduce_algorithm.h"
#include "common/model/forward.h"
#include "scheduler-service/devices/problem.h"

namespace medley::sched {

// Replicas of the whole model on several devices, each with its share of every batch. Equal parts of what the program
// does follow the order of `devices`: a ring passes them in this order, the first of a group is its leader.
struct DataParallel {
  std::vector<int> devices;                           // of the problem; not empty, no repetition
  std::vector<double> shares;                         // by position in `devices`, above 0; they sum to 1
  std::vector<std::vector<std::vector<int>>> levels;  // of groups, innermost first; devices of the problem. Empty: none
  std::vector<model::AllreduceAlgorithm> algorithms;  // of each level, and at the end among the outermost groups
};
model::ExecutionPlan BuildDataParallel(const DeviceProblem& problem, const DataParallel& how);

// Neighbouring layers on devices of their own.
struct PipelineStage {
  int first = 0;
  int end = 0;  // exclusive
  std::vector<int> devices;
  bool operator==(const PipelineStage&) const = default;
};
// Stages in order, which cover all layers. Replicas of a stage get shares by BalancedSamples, in the order given; those
// that would get no sample are left out. Gradients go round a ring, or by recursive doubling where that is faster.
model::ExecutionPlan BuildPipeline(const DeviceProblem& problem, const std::vector<PipelineStage>& stages);

// "conv1..pool2 @ gpu-0+gpu-1 | fc @ cpu".
std::string PipelineText(const DeviceProblem& problem, const std::vector<PipelineStage>& stages);

}  // namespace medley::sched
