// Plans of single operations on real processes: four trainers with CPU quotas of 1 : 2 : 2 : 4, three graphs, and links
// between them whose speed is set so that the allreduce of even replicas takes a given part of their computation.
//
//   operation_bench --graphs FOLDER [--models alexnet,resnet,transformer] [--parts 0.3,0.7,1.2] [--rounds 2]
//                   [--steps 8] [--planners graph,ev-ps,ev-ar,cp-ps,cp-ar] [--cores 1.6] [--period-ms 10]
//                   [--rate BYTES_PER_SECOND] [--micro-batches 1] [--least-seconds 1]
//
// The models tapp-alexnet, tapp-vgg16 and tapp-inception_v3 are those of TAPP on small images, for plans of pipelines:
// --planners exact/async,tapp/async,bsp has the asynchronous schedule for two of them. --rate instead of --parts sets
// the speed of all links.
//
// With --held-out 0.75,0.35 it measures instead how well profiles predict these parts of their batch, which profilers
// do not measure: each operation by the linear regression of its seconds.
//
// FOLDER is what real_models.py beside this file writes. Every trainer has a network card of that speed on an emulated
// network (localcluster/node/emulated_network.h). Plans follow from measured profiles and the speed alone. A batch is
// as many times the model's usual one as a step of the fastest trainer alone needs to take --least-seconds.
// Prints a line of JSON for each plan: seconds of a step, measured and simulated, both as medians of the rounds. In
// each round profiles are measured again, because machines that others use too change their speed, and plans take
// turns. Needs root and cgroups, and nothing else should run.
#include <absl/strings/str_split.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/status.h"
#include "common/base/testing/temp_dir.h"
#include "common/model/execution_plan.h"
#include "common/model/model.h"
#include "common/model/planning.h"
#include "common/model/profile.h"
#include "localcluster/node/emulated_network.h"
#include "scheduler-service/simulate/from_profile.h"
#include "scheduler-service/simulate/plan_simulation.h"
#include "scheduler-service/simulate/profile_quotas.h"
#include "tests/bench/planned_steps.h"
#include "tests/bench/pool_quotas.h"
#include "tests/bench/synchronisation/digits.h"
#include "worker/profiler/statistics.h"

namespace medley::bench {
namespace {

using Json = nlohmann::ordered_json;
using localcluster::EmulatedNetwork;

const std::vector<PoolUnits> kPools = {{"one", 1}, {"two", 2}, {"four", 1}};
constexpr double kShares = 9;  // of the cores: 1 + 2 * 2 + 4
constexpr int kDevices = 4;
constexpr double kLatencySeconds = 1e-4;
constexpr int kWarmUp = 3;
constexpr double kUnlimited = 1e12;  // bytes/s

struct Flags {
  std::string graphs;
  std::vector<std::string> models = {"alexnet", "resnet", "transformer"};
  std::vector<double> parts = {0.3, 0.7, 1.2};
  std::vector<std::string> planners = {"graph", "ev-ps", "ev-ar", "cp-ps", "cp-ar"};
  int rounds = 2;
  int steps = 8;
  double cores = 1.6;
  int period_ms = 10;
  double rate = 0;  // bytes/s; 0: by `parts`
  int micro_batches = 1;
  double least_seconds = 1;  // of a step on the fastest trainer alone
  std::vector<double> held_out;
};

struct Graph {
  int batch = 0;
  int side = 0;  // of images; 0: rows of Adult
  int channels = 0;
  size_t rows = 0;  // at most; 0: all
};

absl::StatusOr<Graph> GraphOf(const std::string& model) {
  if (model == "alexnet") return Graph{512, 32, 3};
  if (model == "resnet") return Graph{192, 28, 1};
  if (model == "transformer") return Graph{1024};
  // Each trainer holds all images.
  if (model == "tapp-alexnet") return Graph{32, 64, 3, 1024};
  if (model == "tapp-vgg16") return Graph{8, 64, 3, 1024};
  if (model == "tapp-inception_v3") return Graph{16, 96, 3, 1024};
  return base::InvalidArgument("--models: no model '{}'", model);
}

struct Planned {
  std::string planner;
  model::ExecutionPlan plan;
  std::vector<double> simulated = {}, measured = {};  // by round
};

class Bench {
 public:
  explicit Bench(const Flags& flags)
      : flags_(flags),
        folder_(base::MakeTempDir("medley-operations").value()),
        quotas_(
            {{"one", flags.cores / kShares}, {"two", 2 * flags.cores / kShares}, {"four", 4 * flags.cores / kShares}},
            base::milliseconds(flags.period_ms), clock_) {}
  ~Bench() { base::RemoveTempDir(folder_); }

  absl::Status Run() {
    MEDLEY_RETURN_IF_ERROR(quotas_.status());
    for (const std::string& model : flags_.models) {
      MEDLEY_ASSIGN_OR_RETURN(const Graph graph, GraphOf(model));
      MEDLEY_RETURN_IF_ERROR(flags_.held_out.empty() ? RunModel(model, graph) : HoldOut(model, graph));
    }
    if (errors_.empty()) return absl::OkStatus();
    const Json all = {{"medianError", worker::Median(errors_)}, {"maxError", std::ranges::max(errors_)}};
    std::printf("%s\n", all.dump().c_str());
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<worker::JobOptions> OptionsOf(const std::string& model, const Graph& graph) {
    const std::filesystem::path archive = std::filesystem::path(flags_.graphs) / (model + ".pt");
    if (!std::filesystem::exists(archive)) {
      return base::NotFound("{} is missing: python3 tests/bench/graph/real_models.py {}", archive.string(),
                            flags_.graphs);
    }
    Json spec;
    spec["model"] = {{"torchScript", {{"uri", "file://" + std::filesystem::absolute(archive).string()}}},
                     {"cut", {{"depth", model == "transformer" ? 2 : 1}}},
                     {"task", graph.side > 0 ? "multiClass" : "binary"}};
    if (graph.side > 0) {
      const auto examples = worker::ExampleData("").parent_path().parent_path();
      MEDLEY_ASSIGN_OR_RETURN(Digits digits, ReadDigits(examples / "lenet" / "t10k"));
      if (graph.rows > 0 && graph.rows < digits.images.size()) {
        digits.images.resize(graph.rows);
        digits.labels.resize(graph.rows);
      }
      MEDLEY_RETURN_IF_ERROR(WriteDigits(digits, {graph.side, graph.channels}, folder_, model));
      const std::string data = "file://" + (folder_ / model).string();
      spec["data"]["train"] = {{"format", "idx"}, {"uri", data + "-images"}, {"labels", data + "-labels"}};
      spec["data"]["inputs"] = Json::array({{{"name", "input"},
                                             {"type", "float32"},
                                             {"shape", {graph.channels, graph.side, graph.side}},
                                             {"scale", 1 / 255.0}}});
      Json classes = Json::array();
      for (int digit = 0; digit < 10; ++digit) classes.push_back(std::to_string(digit));
      spec["data"]["schema"] = {{"label", {{"classes", classes}}}};
    } else {
      spec["data"]["train"] = {{"format", "csv"}, {"uri", "file://" + worker::ExampleData("adult.train.csv").string()}};
      spec["data"]["inputs"] =
          Json::array({{{"name", "numbers"}, {"type", "float32"}, {"columns", {0, 2, 4, 10, 11, 12}}}});
      spec["data"]["schema"] = {{"label", {{"column", 14}, {"positive", ">50K"}}}};
    }
    spec["training"] = {
        {"epochs", 100000}, {"batchSize", graph.batch}, {"microBatches", flags_.micro_batches}, {"seed", 1}};
    spec["training"]["optimizer"] = {{"name", "sgd"}, {"learningRate", 0.001}};
    spec["checkpoint"] = {{"interval", "3600s"}, {"keep", 3}};
    worker::JobOptions options;
    options.spec_json = spec.dump();
    options.operations = 2;  // of shapes with stages, which are not used here
    options.tables = {};
    options.share_memory = false;  // as pods on different machines
    options.place = [this](const std::string& pool, pid_t process) { quotas_.Place(pool, process); };
    return options;
  }

  absl::StatusOr<model::PlanRequest> Ask(const model::Profile& profile, const std::string& planner,
                                         double bytes_per_second) const {
    MEDLEY_ASSIGN_OR_RETURN(model::PlanRequest request, AskAsOperator(profile, {planner, profile.profile_batch_size,
                                                                                flags_.micro_batches, kPools}));
    request.cluster.links = {{"*", "*", kLatencySeconds, bytes_per_second}};
    return request;
  }

  absl::StatusOr<Planned> Plan(const model::Profile& profile, const std::string& planner,
                               double bytes_per_second) const {
    MEDLEY_ASSIGN_OR_RETURN(const model::PlanRequest request, Ask(profile, planner, bytes_per_second));
    MEDLEY_ASSIGN_OR_RETURN(model::ExecutionPlan plan, PlanSteps(request));
    return Planned{planner, std::move(plan)};
  }

  // Seconds of a step.
  absl::StatusOr<double> Simulate(const model::Profile& profile, const Planned& planned,
                                  double bytes_per_second) const {
    MEDLEY_ASSIGN_OR_RETURN(const model::PlanRequest request, Ask(profile, planned.planner, bytes_per_second));
    MEDLEY_ASSIGN_OR_RETURN(const sched::ClusterLinks links, sched::ClusterLinks::Make(request.cluster));
    const sched::DeviceLinks view = links.View();
    MEDLEY_ASSIGN_OR_RETURN(
        const sched::PlanSimulation simulated,
        sched::SimulatePlan(
            planned.plan, profile,
            {.samples = profile.profile_batch_size, .links = &view, .quota_period_seconds = flags_.period_ms / 1e3}));
    return simulated.simulation.seconds_per_step;
  }

  absl::StatusOr<double> Measure(const worker::JobOptions& from, const Planned& planned, double bytes_per_second) {
    MEDLEY_ASSIGN_OR_RETURN(const auto network, EmulatedNetwork::Create(1));
    const localcluster::CardState card{.sends = bytes_per_second, .receives = bytes_per_second};
    for (int d = 0; d < kDevices; ++d) {
      MEDLEY_RETURN_IF_ERROR(network->SetCard(fmt::format("t0-{}", d), card));
    }
    worker::JobOptions options = from;
    options.network = network.get();
    absl::StatusOr<double> seconds;
    {
      worker::JobHarness job(options);
      seconds = MeasureSteps(job, ShapeOf(planned.plan), kWarmUp, flags_.steps,
                             base::seconds(static_cast<int64_t>(std::ceil(5 * planned.simulated.back())) + 1));
    }
    quotas_.Clear();
    return seconds;
  }

  absl::StatusOr<model::Profile> ProfileOf(const worker::JobOptions& options) {
    absl::StatusOr<model::Profile> profile;
    {
      worker::JobHarness job(options);
      std::vector<std::string> pools;
      for (const PoolUnits& pool : kPools) pools.push_back(pool.pool);
      profile = MeasureProfiles(job, pools);
    }
    quotas_.Clear();
    return profile;
  }

  // Measured and predicted seconds of the operations with a part of the batch that no profiler of `graph` measures,
  // while no quota holds them up.
  absl::Status HoldOut(const std::string& name, const Graph& graph) {
    MEDLEY_ASSIGN_OR_RETURN(const worker::JobOptions options, OptionsOf(name, graph));
    MEDLEY_ASSIGN_OR_RETURN(const model::Profile profile, ProfileOf(options));
    const auto parts = sched::QuotaParts(profile);
    for (const double part : flags_.held_out) {
      Graph smaller = graph;
      smaller.batch = static_cast<int>(std::lround(part * graph.batch));
      MEDLEY_ASSIGN_OR_RETURN(const worker::JobOptions smaller_options, OptionsOf(name, smaller));
      MEDLEY_ASSIGN_OR_RETURN(const model::Profile other, ProfileOf(smaller_options));
      const auto other_parts = sched::QuotaParts(other);
      for (const PoolUnits& pool : kPools) {
        double predicted_sum = 0, measured_sum = 0;
        std::vector<double> errors;
        for (int i = 0; i < static_cast<int>(profile.model.layers.size()); ++i) {
          MEDLEY_ASSIGN_OR_RETURN(const double predicted,
                                  sched::ComputeSeconds(profile, parts, i, pool.pool,
                                                        static_cast<double>(smaller.batch) / graph.batch, graph.batch));
          MEDLEY_ASSIGN_OR_RETURN(const double measured,
                                  sched::ComputeSeconds(other, other_parts, i, pool.pool, 1, smaller.batch));
          predicted_sum += predicted;
          measured_sum += measured;
          if (measured > 0) errors.push_back(std::abs(predicted / measured - 1));
        }
        const double error = predicted_sum / measured_sum - 1;
        errors_.push_back(std::abs(error));
        const Json line = {{"model", name},
                           {"pool", pool.pool},
                           {"batch", smaller.batch},
                           {"measuredSeconds", measured_sum},
                           {"predictedSeconds", predicted_sum},
                           {"medianErrorOfOperations", worker::Median(errors)}};
        std::printf("%s\n", line.dump().c_str());
        std::fflush(stdout);
      }
    }
    return absl::OkStatus();
  }

  // With batches of which a step of the fastest trainer alone takes long enough.
  absl::StatusOr<Graph> Enlarged(const std::string& model, Graph graph) {
    MEDLEY_ASSIGN_OR_RETURN(const worker::JobOptions options, OptionsOf(model, graph));
    MEDLEY_ASSIGN_OR_RETURN(const model::Profile profile, ProfileOf(options));
    MEDLEY_ASSIGN_OR_RETURN(const Planned alone, Plan(profile, "one-device", kUnlimited));
    MEDLEY_ASSIGN_OR_RETURN(const double seconds, Simulate(profile, alone, kUnlimited));
    constexpr double kSlower = 1.2;  // than while it was measured
    const double times = std::max(1.0, std::ceil(kSlower * flags_.least_seconds / seconds));
    if (times * graph.batch > static_cast<double>(profile.samples_per_epoch)) {
      return base::InvalidArgument("--least-seconds: {} takes {:.3f} s for {} samples, and there are only {}", model,
                                   seconds, graph.batch, profile.samples_per_epoch);
    }
    graph.batch *= static_cast<int>(times);
    return graph;
  }

  absl::Status RunModel(const std::string& model, const Graph& least) {
    MEDLEY_ASSIGN_OR_RETURN(const Graph graph, Enlarged(model, least));
    MEDLEY_ASSIGN_OR_RETURN(const worker::JobOptions options, OptionsOf(model, graph));
    MEDLEY_ASSIGN_OR_RETURN(model::Profile profile, ProfileOf(options));
    double bytes = 0;
    for (const model::Layer& layer : profile.model.layers) bytes += layer.weight_bytes;
    MEDLEY_ASSIGN_OR_RETURN(const Planned even, Plan(profile, "ev-ar", kUnlimited));
    MEDLEY_ASSIGN_OR_RETURN(const double even_seconds, Simulate(profile, even, kUnlimited));
    const double moved = 2.0 * (kDevices - 1) / kDevices * bytes;  // what each member of a ring sends and receives
    const std::vector<double> one = {moved / std::max(flags_.rate, 1.0) / even_seconds};
    for (const double part : flags_.rate > 0 ? one : flags_.parts) {
      const double rate = moved / (part * even_seconds);
      std::fprintf(stderr, "%s: batch %d, %.1f MB of parameters, even replicas compute %.2f s, links of %.1f MB/s\n",
                   model.c_str(), graph.batch, bytes / 1e6, even_seconds, rate / 1e6);
      std::vector<Planned> plans;
      for (int round = 0; round < flags_.rounds; ++round) {
        MEDLEY_ASSIGN_OR_RETURN(profile, ProfileOf(options));
        for (const std::string& planner : flags_.planners) {
          if (round > 0) break;
          MEDLEY_ASSIGN_OR_RETURN(plans.emplace_back(), Plan(profile, planner, rate));
          std::fprintf(stderr, "  %-6s%s\n", planner.c_str(), PlacementsText(plans.back().plan).c_str());
        }
        for (Planned& plan : plans) {
          MEDLEY_ASSIGN_OR_RETURN(plan.simulated.emplace_back(), Simulate(profile, plan, rate));
          MEDLEY_ASSIGN_OR_RETURN(plan.measured.emplace_back(), Measure(options, plan, rate));
          std::fprintf(stderr, "  %-6s measured %.3f s, simulated %.3f s\n", plan.planner.c_str(), plan.measured.back(),
                       plan.simulated.back());
        }
      }
      for (const Planned& plan : plans) {
        const double measured = worker::Median(plan.measured), simulated = worker::Median(plan.simulated);
        errors_.push_back(std::abs(simulated / measured - 1));
        const Json line = {{"model", model},
                           {"batch", graph.batch},
                           {"part", part},
                           {"bytesPerSecond", rate},
                           {"planner", plan.planner},
                           {"overlapsNextStep", plan.plan.schedule.overlap_next_step},
                           {"measuredSeconds", measured},
                           {"simulatedSeconds", simulated},
                           {"measured", plan.measured},
                           {"simulated", plan.simulated}};
        std::printf("%s\n", line.dump().c_str());
        std::fflush(stdout);
      }
    }
    return absl::OkStatus();
  }

  const Flags flags_;
  const std::filesystem::path folder_;
  base::SystemClock clock_;
  PoolQuotas quotas_;
  std::vector<double> errors_;
};

}  // namespace
}  // namespace medley::bench

int main(int argc, char** argv) {
  testing::InitGoogleTest();  // the harness reports its failures to it
  CLI::App app{"Plans of single operations on real processes"};
  medley::bench::Flags flags;
  app.add_option("--graphs", flags.graphs, "folder of the models")->required();
  app.add_option("--models", flags.models)->delimiter(',')->check([](const std::string& model) {
    return medley::bench::GraphOf(model).ok() ? "" : "no model " + model;
  });
  app.add_option("--parts", flags.parts, "allreduce of even replicas over their computation")
      ->delimiter(',')
      ->check(CLI::Range(1e-3, 1e3));
  app.add_option("--planners", flags.planners)->delimiter(',');
  app.add_option("--rounds", flags.rounds)->check(CLI::Range(1, 100));
  app.add_option("--steps", flags.steps, "of each measurement")->check(CLI::Range(1, 1000));
  app.add_option("--cores", flags.cores, "of all trainers")->check(CLI::Range(0.2, 64.0));
  app.add_option("--held-out", flags.held_out, "parts of the batch")->delimiter(',')->check(CLI::Range(0.05, 1.0));
  app.add_option("--rate", flags.rate, "of all links, in bytes/s")->check(CLI::Range(1e4, 1e12))->excludes("--parts");
  app.add_option("--micro-batches", flags.micro_batches)->check(CLI::Range(1, 64));
  app.add_option("--least-seconds", flags.least_seconds, "of a step on the fastest trainer alone")
      ->check(CLI::Range(0.0, 60.0));
  app.add_option("--period-ms", flags.period_ms, "of the quotas")->check(CLI::Range(1, 1000));
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = medley::bench::Bench(flags).Run();
  if (status.ok()) return 0;
  std::fprintf(stderr, "operation_bench: %s\n", medley::base::ToString(status).c_str());
  return 1;
}
