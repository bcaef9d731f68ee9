#include "tests/unit/worker/pipeline/replicas_reference.h"

#include <algorithm>
#include <memory>

#include "common/model/execution_plan.h"
#include "common/model/model.h"
#include "common/program/compile.h"
#include "tests/unit/worker/pipeline/pipeline_harness.h"
#include "worker/data/block_order.h"
#include "worker/model/block_model.h"
#include "worker/pipeline/batch_assembler.h"

namespace medley::worker::testing {
namespace {

using Parameters = std::vector<std::vector<float>>;  // by parameter

struct Replica {
  std::unique_ptr<BlockModel> model;
  PreparedStep data;
  Parameters weights, state;
  Parameters gradients;  // sums over the samples
};

// The sum of the losses of the replica's samples; sets its gradients.
double Compute(const StepLease& lease, Replica& replica) {
  replica.model->SetAppliedStep(lease.step - 1);
  const std::vector<DenseParameter> parameters = replica.model->Parameters();
  for (size_t p = 0; p < parameters.size(); ++p) {
    std::ranges::copy(replica.weights[p], parameters[p].weights.begin());
  }
  replica.model->BeginStep({.step = lease.step, .version = lease.step - 1, .global_samples = 1});
  (void)replica.model->Forward({0, 0}, replica.data.batch.View(0, replica.data.batch.samples), {});
  (void)replica.model->Backward({0, 0}, {});
  replica.model->Gradients();
  replica.gradients.clear();
  for (const DenseParameter& parameter : parameters) {
    replica.gradients.emplace_back(parameter.gradient.begin(), parameter.gradient.end());
  }
  return replica.model->LossSum(0);
}

void Update(std::vector<Replica>& replicas, const std::vector<size_t>& group, const Optimizer& optimizer) {
  float samples = 0;
  for (const size_t r : group) samples += static_cast<float>(replicas[r].data.batch.samples);
  for (size_t p = 0; p < replicas.front().weights.size(); ++p) {
    std::vector<float> mean(replicas.front().weights[p].size());
    for (const size_t r : group) {
      for (size_t i = 0; i < mean.size(); ++i) mean[i] += replicas[r].gradients[p][i] / samples;
    }
    for (const size_t r : group) Apply(optimizer, replicas[r].weights[p], replicas[r].state[p], mean);
  }
}

void Agree(std::vector<Replica>& replicas) {
  for (Parameters Replica::*values : {&Replica::weights, &Replica::state}) {
    for (size_t p = 0; p < (replicas.front().*values).size(); ++p) {
      std::vector<float> mean((replicas.front().*values)[p].size());
      for (const Replica& replica : replicas) {
        for (size_t i = 0; i < mean.size(); ++i) {
          mean[i] += (replica.*values)[p][i] / static_cast<float>(replicas.size());
        }
      }
      for (Replica& replica : replicas) (replica.*values)[p] = mean;
    }
  }
}

}  // namespace

std::vector<double> ReferenceLosses(const model::JobSpec& job, const Dataset& data,
                                    const std::map<int64_t, ReferenceReplicas>& changes,
                                    const std::set<int64_t>& agreements, int64_t steps) {
  const Graph graph = *BuildGraph(job);
  const Optimizer optimizer = *MakeOptimizer(job.training.optimizer, job.training.learning_rate);
  const model::OperationRange whole{0, static_cast<int>(graph.operations.size())};
  std::vector<Replica> replicas;
  const ReferenceReplicas* now = nullptr;
  program::Program program;  // only to divide the batches
  std::vector<double> losses;
  for (const StepLease& lease : Leases(job, data.rows())) {
    if (lease.step > steps) break;
    if (const auto change = changes.find(lease.step); change != changes.end()) {
      now = &change->second;
      program = *program::Compile(PlanOf({{whole}, {now->shares}}, graph), graph.ToModel());
      const bool first = replicas.empty();
      if (first) replicas.emplace_back();
      replicas.erase(replicas.begin() + 1, replicas.end());
      Replica& one = replicas.front();
      one.model = *BlockModel::Create(graph, whole, optimizer, job.training.seed);
      for (const DenseParameter& parameter : one.model->Parameters()) {
        if (!first) break;
        one.weights.emplace_back(parameter.weights.begin(), parameter.weights.end());
        one.state.emplace_back(parameter.state.begin(), parameter.state.end());
      }
      while (replicas.size() < now->shares.size()) {
        replicas.push_back({*BlockModel::Create(graph, whole, optimizer, job.training.seed),
                            {},
                            replicas.front().weights,
                            replicas.front().state,
                            {}});
      }
    }
    double loss = 0;
    for (size_t r = 0; r < replicas.size(); ++r) {
      const std::vector<double>& cuts = program.layouts.front().cuts;
      BatchAssembler assembler(1, {{{cuts[r], cuts[r + 1]}}, job.training.seed, BlockOrderOf(job.data, data.rows())},
                               data, {});
      if (!assembler.Assemble(lease, {}, replicas[r].data).ok()) return losses;
      loss += Compute(lease, replicas[r]);
    }
    losses.push_back(loss / lease.count);
    for (const std::vector<size_t>& group : now->groups) Update(replicas, group, optimizer.AtStep(lease.step));
    if (agreements.contains(lease.step)) Agree(replicas);
  }
  return losses;
}

}  // namespace medley::worker::testing
