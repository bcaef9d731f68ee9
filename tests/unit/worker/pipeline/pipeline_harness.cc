#include "tests/unit/worker/pipeline/pipeline_harness.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <thread>

#include "common/base/status.h"
#include "common/model/execution_plan.h"
#include "common/model/model.h"
#include "common/program/compile.h"
#include "worker/model/block_model.h"
#include "worker/model/graph.h"
#include "worker/params/optimizer_of.h"
#include "worker/pipeline/dense_values.h"
#include "worker/pipeline/testing/memory_fabric.h"

namespace medley::worker::testing {
namespace {

// The objects that the threads of one run share.
struct World {
  const model::JobSpec& job;
  const Layout& layout;
  const Dataset& train;
  const Dataset* test;
  std::vector<StepLease> leases;
  Graph graph;
  Optimizer optimizer;
  Programs programs;
  MemoryFabric fabric;
  std::vector<std::unique_ptr<MemorySum>> sums;  // by layout of the program
  std::unique_ptr<SharedTables> tables;
  std::stop_source stop;
  base::SystemClock clock;
};

struct Part {
  absl::Status status;
  std::vector<StepResult> steps;
  ScoreSums evaluation;
  std::vector<std::pair<std::string, std::vector<float>>> parameters;
};

// The index of a device in a layout; nullopt: it is not in it.
std::optional<int> ReplicaOf(const program::Layout& layout, int device) {
  const auto found = std::ranges::find(layout.devices, device);
  if (found == layout.devices.end()) return std::nullopt;
  return static_cast<int>(found - layout.devices.begin());
}

// The reductions of one device, in all of its layouts.
class DeviceReducer final : public DenseReducer {
 public:
  DeviceReducer(World& world, int device) {
    for (size_t l = 0; l < world.sums.size(); ++l) {
      const std::optional<int> replica = ReplicaOf(world.programs.training.layouts[l], device);
      if (replica) ends_[static_cast<int>(l)] = world.sums[l]->End(*replica);
    }
  }
  absl::Status SumAll(int64_t step, int block, const program::Group& group, std::span<float> values,
                      const WaitLimit& limit) override {
    return ends_.at(group.layout)->SumAll(step, block, group, values, limit);
  }

 private:
  std::map<int, std::unique_ptr<DenseReducer>> ends_;
};

absl::Status RunDevice(World& world, int device, Part& part) {
  ExecutorParts parts{.blocks = std::vector<BlockCompute*>(world.programs.training.blocks.size(), nullptr),
                      .data = &world.train,
                      .clock = &world.clock,
                      .blocks_of_data = world.layout.blocks,
                      .drawn = world.graph.operations.back().negatives};
  std::vector<std::unique_ptr<BlockCompute>> models;
  for (size_t b = 0; b < world.programs.training.blocks.size(); ++b) {
    const program::Block& block = world.programs.training.blocks[b];
    if (!ReplicaOf(world.programs.training.layouts[static_cast<size_t>(block.layout)], device)) continue;
    const uint64_t seed = world.job.training.seed;
    const int kept = world.programs.training.lag;
    if (world.layout.block) {
      MEDLEY_ASSIGN_OR_RETURN(models.emplace_back(),
                              world.layout.block(world.graph, block.operations, world.optimizer, seed, kept));
    } else {
      MEDLEY_ASSIGN_OR_RETURN(models.emplace_back(),
                              BlockModel::Create(world.graph, block.operations, world.optimizer, seed, nullptr, kept));
    }
    parts.blocks[b] = models.back().get();
  }
  const std::unique_ptr<FlowChannel> channel = world.fabric.End(device);
  DeviceReducer reducer(world, device);
  const std::unique_ptr<SparseParameters> sparse = world.tables->End(device);
  parts.channel = channel.get();
  parts.reducer = &reducer;
  parts.sparse = sparse.get();
  MEDLEY_ASSIGN_OR_RETURN(
      const std::unique_ptr<Executor> executor,
      Executor::Create(world.programs, device, std::move(parts), world.optimizer, world.job.training.seed));
  const WaitLimit limit{world.stop.get_token(), world.clock.Steady() + std::chrono::minutes(2)};
  for (size_t i = 0; i < world.leases.size(); ++i) {
    const bool drains = i + 1 == world.leases.size() || world.layout.drains.contains(world.leases[i].step);
    executor->Prefetch(world.leases[i]);
    if (!drains) executor->Prefetch(world.leases[i + 1]);
    MEDLEY_ASSIGN_OR_RETURN(std::optional<StepResult> result, executor->RunStep(world.leases[i], limit));
    if (result) part.steps.push_back(*result);
    while (drains) {
      MEDLEY_ASSIGN_OR_RETURN(result, executor->Drain(limit));
      if (!result) break;
      part.steps.push_back(*result);
    }
  }
  for (const auto& model : models) {
    const std::vector<DenseParameter> parameters = model->Parameters();
    for (size_t p = 0; p < parameters.size(); ++p) {
      const DenseValues weights(*model, p, parameters[p], DensePart::kWeights, 0);
      MEDLEY_ASSIGN_OR_RETURN(std::vector<float> values, weights.Copy());
      part.parameters.emplace_back(parameters[p].spec.name, std::move(values));
    }
  }
  if (world.test != nullptr) {
    const int64_t step = world.leases.empty() ? 0 : world.leases.back().step;
    MEDLEY_ASSIGN_OR_RETURN(part.evaluation,
                            executor->Evaluate(*world.test, step, {.chunk = 4096, .stop = limit.stop}));
  }
  return absl::OkStatus();
}

absl::StatusOr<RunOutcome> Collect(const std::vector<Part>& parts) {
  RunOutcome outcome;
  for (const Part& part : parts) {
    if (!part.status.ok() && !absl::IsCancelled(part.status)) return part.status;
  }
  outcome.losses.resize(parts.front().steps.size());
  ScoreSums total;
  for (size_t i = 0; i < outcome.losses.size(); ++i) {
    double samples = 0;
    for (const Part& part : parts) {
      outcome.losses[i] += part.steps[i].loss_sum;
      samples += static_cast<double>(part.steps[i].loss_samples);
    }
    outcome.losses[i] /= samples;
  }
  for (const Part& part : parts) {
    total.Add(part.evaluation);
    outcome.parameters.insert(outcome.parameters.end(), part.parameters.begin(), part.parameters.end());
  }
  const std::map<std::string, double> metrics = MetricsOf(total);
  if (!metrics.empty()) {
    outcome.auc = metrics.at("auc");
    outcome.log_loss = metrics.at("logLoss");
  }
  return outcome;
}

}  // namespace

model::JobSpec AdultJob() {
  const std::string root = std::getenv("MEDLEY_SOURCE_DIR") == nullptr ? "." : std::getenv("MEDLEY_SOURCE_DIR");
  model::JobSpec job;
  job.model.name = "ctrdnn";
  job.data.train = {"file://" + root + "/examples/data/adult.train.csv", "csv"};
  job.data.test = {{"file://" + root + "/examples/data/adult.test.csv", "csv"}};
  job.data.schema = {.label_column = 14,
                     .label_positive = ">50K",
                     .categorical = {1, 3, 5, 6, 7, 8, 9, 13},
                     .numeric = {0, 2, 4, 10, 11, 12},
                     .numeric_buckets = 32};
  return job;
}

std::vector<StepLease> Leases(const model::JobSpec& job, int64_t rows) {
  std::vector<StepLease> leases;
  int64_t step = 0;
  for (int64_t epoch = 0; epoch < job.training.epochs; ++epoch) {
    for (int64_t first = 0; first < rows; first += job.training.batch_size) {
      const int64_t count = std::min<int64_t>(job.training.batch_size, rows - first);
      leases.push_back({++step, epoch, first, static_cast<int>(count)});
    }
  }
  return leases;
}

model::ExecutionPlan PlanOf(const Layout& layout, const Graph& graph) {
  model::ExecutionPlan plan;
  bool servers = false;
  for (size_t s = 0; s < layout.stages.size(); ++s) {
    model::Stage stage;
    stage.operations = {layout.stages[s]};
    double total = 0;
    for (const double share : layout.shares[s]) total += share;
    for (const double share : layout.shares[s]) stage.groups.push_back({"p" + std::to_string(s), 1, share / total});
    for (int i = layout.stages[s].first; i < layout.stages[s].end; ++i) {
      const auto& parameters = graph.operations[static_cast<size_t>(i)].parameters;
      const bool table = std::any_of(parameters.begin(), parameters.end(), [](const auto& p) { return p.sparse; });
      const bool served = table && layout.shares[s].size() > 1;
      servers |= served;
      const model::SyncKind kind = served ? model::SyncKind::kParameterServer : model::SyncKind::kAllreduce;
      const bool replaced = layout.sync.has_value() && !served;
      stage.syncs.push_back({{{i, i + 1}}, replaced ? *layout.sync : model::Sync{.kind = kind}});
    }
    plan.stages.push_back(std::move(stage));
  }
  if (servers) plan.servers = model::Servers{"servers", 1};
  plan.schedule = {layout.schedule, layout.micro_batches, layout.max_staleness, layout.bucket_bytes};
  return plan;
}

absl::StatusOr<RunOutcome> Train(const model::JobSpec& job, const Layout& layout, const Dataset& train,
                                 const Dataset* test, int64_t steps) {
  MEDLEY_ASSIGN_OR_RETURN(const Graph graph, BuildGraph(job));
  return Train(job, PlanOf(layout, graph), layout, train, test, steps);
}

absl::StatusOr<RunOutcome> Train(const model::JobSpec& job, const model::ExecutionPlan& plan, const Layout& options,
                                 const Dataset& train, const Dataset* test, int64_t steps) {
  World world{job, options, train, test, Leases(job, train.rows())};
  if (steps > 0 && steps < std::ssize(world.leases)) world.leases.resize(static_cast<size_t>(steps));
  for (StepLease& lease : world.leases) {
    lease.agrees = !options.agreements.has_value() || options.agreements->contains(lease.step);
  }
  MEDLEY_ASSIGN_OR_RETURN(world.graph, options.graph ? options.graph(job) : BuildGraph(job));
  MEDLEY_ASSIGN_OR_RETURN(world.optimizer, OptimizerOf(job.training));
  MEDLEY_ASSIGN_OR_RETURN(world.programs.training, program::Compile(plan, world.graph.ToModel()));
  MEDLEY_ASSIGN_OR_RETURN(world.programs.evaluation, program::CompileEvaluation(plan, world.graph.ToModel()));
  const program::Program& program = world.programs.training;
  for (const program::Layout& of : program.layouts) world.sums.push_back(std::make_unique<MemorySum>(of.replicas()));
  std::set<int> pushing;  // devices
  for (const program::Block& block : program.blocks) {
    if (block.tables.empty()) continue;
    const std::vector<int>& devices = program.layouts[static_cast<size_t>(block.layout)].devices;
    pushing.insert(devices.begin(), devices.end());
  }
  world.tables =
      std::make_unique<SharedTables>(static_cast<int>(pushing.size()), world.graph.Parameters(/*sparse=*/true),
                                     world.optimizer, job.training.seed, program.lag);
  const auto trainers = std::ranges::count_if(program.devices, [](const auto& device) { return !device.server; });
  std::vector<Part> parts(static_cast<size_t>(trainers));
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < parts.size(); ++i) {
      threads.emplace_back([&, i] {
        parts[i].status = RunDevice(world, static_cast<int>(i), parts[i]);
        if (!parts[i].status.ok()) world.stop.request_stop();
      });
    }
  }
  return Collect(parts);
}

}  // namespace medley::worker::testing
