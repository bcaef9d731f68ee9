// The planner `tapp` against the exact search, PipeDream, Pipe-torch, BSP, random draws and local search, by the
// simulator:
//   table     the models and the cluster of examples/: Table 1 and Figure 4 of TAPP, for several bandwidths and batches
//   clusters  random clusters of 3 to 8 devices, with equal simulator calls for tapp and random draws
//   closed    the closed form of the exact search against the simulator, on random pipelines
//   learning  rewards by round, with the default settings and the paper's (Figures 6 and 7)
// docs/papers/tapp.md has the figures.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <vector>

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/base/status.h"
#include "common/model/convert.h"
#include "common/model/execution_plan.h"
#include "common/model/text.h"
#include "medley/scheduler/v1/scheduler.pb.h"
#include "reproductions/tapp/baselines.h"
#include "reproductions/tapp/tapp_planner.h"
#include "scheduler-service/pipeline/baselines.h"
#include "scheduler-service/pipeline/closed_form.h"
#include "scheduler-service/pipeline/exact_pipeline.h"
#include "scheduler-service/pipeline/pipeline_planners.h"
#include "scheduler-service/planning/candidate.h"
#include "scheduler-service/planning/registry.h"
#include "scheduler-service/profile/analytic.h"
#include "scheduler-service/simulate/plan_simulation.h"
#include "tests/unit/scheduler-service/devices/random_cluster.h"
#include "tests/unit/scheduler-service/planning/judge_of.h"

namespace medley::reproductions::tapp {
namespace {

const base::SystemClock kClock;

struct Flags {
  std::vector<std::string> parts = {"table", "clusters", "learning", "closed"};
  std::string models = "examples/tapp", cluster = "examples/clusters/tapp.yaml", row;
  int seeds = 10, clusters = 50;
  int64_t calls = TappOptions{}.calls;
  double polish = TappOptions{}.polish;
  double rate = TappSettings{}.learning_rate, entropy = TappSettings{}.entropy;
  int draws = TappOptions{}.draws_a_round;
  int64_t rounds = TappOptions{}.rounds;
  uint64_t seed = 1;
  bool verbose = false, paper_only = false;
};

[[noreturn]] void Fail(const absl::Status& status) {
  std::fprintf(stderr, "tapp_bench: %s\n", std::string(status.message()).c_str());
  std::exit(1);
}
template <typename T>
T Must(absl::StatusOr<T> value) {
  if (!value.ok()) Fail(value.status());
  return *std::move(value);
}

double Quantile(std::vector<double> values, double q) {
  std::ranges::sort(values);
  return values.empty() ? 0 : values[static_cast<size_t>(q * static_cast<double>(values.size() - 1) + 0.5)];
}

model::PlanRequest ReadRequest(const Flags& flags, const std::string& name, int batch, double bandwidth) {
  scheduler::v1::PlanRequest message;
  const std::string text = Must(base::ReadFile(flags.cluster, 1 << 20));
  if (const auto status = model::ParseText(text, message); !status.ok()) Fail(status);
  profile::v1::Model model;
  const std::string table = Must(base::ReadFile(flags.models + "/" + name + ".yaml", 1 << 20));
  if (const auto status = model::ParseText(table, model); !status.ok()) Fail(status);
  *message.mutable_model() = model;
  message.set_objective(scheduler::v1::OBJECTIVE_STEP_TIME);
  model::PlanRequest request = Must(model::FromProto(message));
  request.training.profile_batch_size = batch;
  for (model::ClusterLink& link : request.cluster.links) link.bytes_per_second *= bandwidth;
  if (const auto status = sched::AddAnalyticProfiles(request, Must(sched::HardwareCatalog::Builtin())); !status.ok())
    Fail(status);
  return request;
}

struct Outcome {
  double seconds = 0;
  double took = 0;
  sched::Candidate solution;
};
Outcome Solve(const sched::Planner& planner, const sched::DeviceProblem& problem, uint64_t seed) {
  const sched::Budget limits(kClock, base::SteadyTime::max(), {});
  const base::SteadyTime begin = kClock.Steady();
  Outcome out;
  out.solution = Must(planner.Solve(problem, seed, limits));
  out.took = base::ToSeconds(kClock.Steady() - begin);
  out.seconds = out.solution.plan ? out.solution.figures.seconds : sched::kForever;
  return out;
}

TappOptions OptionsOf(const Flags& flags, double polish) {
  TappOptions options;
  options.calls = flags.calls;
  options.polish = polish;
  options.draws_a_round = flags.draws;
  options.rounds = flags.rounds;
  options.settings.learning_rate = flags.rate;
  options.settings.entropy = flags.entropy;
  return options;
}

// The part of a step in which the busiest device does not compute.
double NotComputing(const sched::DeviceProblem& problem, const model::ExecutionPlan& plan) {
  const sched::DeviceLinks links{problem.links(), problem.index()};
  sched::PlanSimulationOptions options{.steps = 40};
  options.links = &links;
  const auto simulated = Must(sched::SimulatePlan(plan, problem.profile(), options));
  double most = 0;
  for (size_t d = 0; d < plan.devices.size(); ++d) most = std::max(most, simulated.computes(d));
  return 1 - most;
}

// A model of the paper on 3 to 8 devices of the datasheets, each a machine of its own, with links of 1 to 100 Gbit/s.
sched::DeviceProblem RandomCluster(const Flags& flags, int number) {
  base::Rng rng(base::Mix64(flags.seed + static_cast<uint64_t>(number)));
  const char* const models[] = {"alexnet", "vgg16", "inception_v3"};
  const char* const hardware[] = {"cpu-16", "t4", "v100", "l4", "a100-40"};
  model::PlanRequest request = ReadRequest(flags, models[number % 3], number % 3 == 1 ? 64 : 128, 1);
  for (model::Layer& layer : request.model.layers) layer.profiles.clear();
  request.resources.clear();
  for (const char* name : hardware) {
    request.resources.push_back(sched::UnpricedResource(name));
    request.resources.back().hardware = name;
  }
  request.cluster = {};
  const int devices = 3 + static_cast<int>(rng.Below(6));
  for (int d = 0; d < devices; ++d) {
    request.cluster.devices.push_back({fmt::format("d{}", d), hardware[rng.Below(5)], "", ""});
  }
  for (int a = 0; a < devices; ++a) {
    for (int b = 0; b < a; ++b) {
      request.cluster.links.push_back(
          {fmt::format("d{}", a), fmt::format("d{}", b), 1e-4, sched::LogUniform(rng, 1.25e8, 1.25e10)});
    }
  }
  if (const auto status = sched::AddAnalyticProfiles(request, Must(sched::HardwareCatalog::Builtin())); !status.ok())
    Fail(status);
  return sched::ProblemOf(std::move(request));
}

// Unlike layers on 3 to 8 devices.
sched::DeviceProblem RandomProblem(base::Rng& rng, bool asynchronous) {
  model::PlanRequest request = sched::RandomClusterRequest(rng, 3 + static_cast<int>(rng.Below(6)), 12);
  for (model::Layer& layer : request.model.layers) {
    const double work = sched::LogUniform(rng, 0.1, 10), weights = sched::LogUniform(rng, 0.01, 10);
    layer.weight_bytes *= weights;
    layer.output_bytes *= sched::LogUniform(rng, 0.1, 10);
    for (model::LayerProfile& times : layer.profiles) times.compute_seconds *= work;
  }
  if (asynchronous) {
    request.planner.schedule = model::ScheduleKind::kAsync1F1B;
  } else {
    request.training.micro_batches = 4;
  }
  return sched::ProblemOf(std::move(request));
}

class Bench {
 public:
  explicit Bench(const Flags& flags) : flags_(flags) {
    for (auto& planner : sched::MakePipelinePlanners()) planners_.Add(std::move(planner));
    for (auto& planner : MakeBaselines()) planners_.Add(std::move(planner));
  }

  void Table() {
    struct Row {
      const char* model;
      int batch;
    };
    bool found = false;
    for (const double bandwidth : {0.1, 1.0, 10.0}) {
      for (const Row row : {Row{"alexnet", 128}, Row{"vgg16", 64}, Row{"inception_v3", 128}}) {
        for (const double scale : {0.5, 1.0, 2.0}) {
          if (bandwidth != 1 && scale != 1) continue;
          if (flags_.paper_only && (bandwidth != 1 || scale != 1)) continue;
          const int batch = static_cast<int>(row.batch * scale);
          const std::string title = fmt::format("{} batch {} bandwidth x {}", row.model, batch, bandwidth);
          if (!flags_.row.empty() && title != flags_.row) continue;
          found = true;
          OneRow(title, sched::ProblemOf(ReadRequest(flags_, row.model, batch, bandwidth)));
        }
      }
    }
    if (!found) Fail(base::InvalidArgument("--row: no row '{}'", flags_.row));
  }

  void Clusters() {
    std::map<std::string, std::vector<double>> above;
    std::vector<double> took, alone;
    int better = 0, alone_better = 0, pipe_torch = 0, pipedream = 0;
    for (int c = 0; c < flags_.clusters; ++c) {
      const sched::DeviceProblem problem = RandomCluster(flags_, c);
      const Outcome exact = Solve(*planners_.Find("exact", sched::Supply::kDevices), problem, 1);
      const Outcome tapp = Solve(*MakeTapp(OptionsOf(flags_, flags_.polish)), problem, 1);
      const Outcome networks = Solve(*MakeTapp(OptionsOf(flags_, 0)), problem, 1);
      const sched::Budget limits(kClock, base::SteadyTime::max(), {});
      const sched::JudgeOf judge(problem);
      sched::PipelineTimer random(*judge, limits);
      base::Rng draws(1);
      SearchRandomly(problem, std::max(tapp.solution.judged, networks.solution.judged), draws, limits, random);
      for (const char* name : {"pipedream", "pipe-torch", "bsp", "bsp-subset", "local"}) {
        const double other = Solve(*planners_.Find(name, sched::Supply::kDevices), problem, 1).seconds;
        above[name].push_back(other / exact.seconds - 1);
        if (std::string(name) == "pipedream") pipedream += tapp.seconds <= 1.01 * other ? 1 : 0;
        if (std::string(name) == "pipe-torch") pipe_torch += tapp.seconds <= 1.01 * other ? 1 : 0;
      }
      above["tapp"].push_back(tapp.seconds / exact.seconds - 1);
      above["tapp, networks alone"].push_back(networks.seconds / exact.seconds - 1);
      above["random draws"].push_back(random.best_seconds() / exact.seconds - 1);
      better += tapp.seconds < random.best_seconds() * (1 - 1e-9) ? 1 : 0;
      alone_better += networks.seconds < random.best_seconds() * (1 - 1e-9) ? 1 : 0;
      if (flags_.verbose) {
        fmt::print(
            "  {:2}: {} devices, {:2} cuts, exact {:.4f} s: {} tapp {:+.2f} % ({} simulations, {:.1f} s), networks "
            "{:+.2f} % "
            "({}), random {:+.2f} % ({}), local {:+.2f} %\n",
            c, problem.devices(), problem.cuts().size(), exact.seconds, exact.solution.explanation,
            100 * (tapp.seconds / exact.seconds - 1), tapp.solution.judged, tapp.took,
            100 * (networks.seconds / exact.seconds - 1), networks.solution.judged,
            100 * (random.best_seconds() / exact.seconds - 1), random.calls(), 100 * above["local"].back());
        std::fflush(stdout);
      }
      tied_ += std::abs(tapp.seconds / random.best_seconds() - 1) <= 1e-9 ? 1 : 0;
      took.push_back(tapp.took);
      exact_took_.push_back(exact.took);
    }
    fmt::print("clusters: {} of 3 to 8 devices; seconds of a step above exact: median, 90th percentile, worst\n",
               flags_.clusters);
    for (const auto& [name, values] : above) {
      fmt::print("  {:24} {:8.2f} % {:8.2f} % {:8.2f} %\n", name, 100 * Quantile(values, 0.5),
                 100 * Quantile(values, 0.9), 100 * Quantile(values, 1));
    }
    fmt::print(
        "  tapp is better than random draws with as many simulations on {} of {} (equal on {}), its networks alone "
        "on {}; at most 1 % slower than pipedream on {}, than pipe-torch on {}\n",
        better, flags_.clusters, tied_, alone_better, pipedream, pipe_torch);
    fmt::print("  tapp plans in at most {:.1f} s, exact in {:.2f} s\n", Quantile(took, 1), Quantile(exact_took_, 1));
  }

  // The closed form against the simulator, on random pipelines.
  void ClosedForm() {
    for (const bool asynchronous : {true, false}) {
      std::vector<double> ratios;
      std::vector<std::pair<double, std::string>> far;
      for (int i = 0; i < 400; ++i) {
        base::Rng rng(base::Mix64(flags_.seed + 7000 + static_cast<uint64_t>(i)));
        const sched::DeviceProblem problem = RandomProblem(rng, asynchronous);
        const auto stages = sched::RandomPipeline(problem, rng);
        const sched::Budget limits(kClock, base::SteadyTime::max(), {});
        const sched::JudgeOf judge(problem);
        sched::PipelineTimer timer(*judge, limits);
        const double closed = sched::SecondsOfPipeline(problem, stages);
        const double ratio = timer.Seconds(stages) / closed;
        ratios.push_back(ratio);
        std::string text = fmt::format("{:.3f}: {:.4f} s simulated, {:.4f} s closed: {}", ratio, timer.Seconds(stages),
                                       closed, sched::PipelineText(problem, stages));
        for (size_t s = 0; s < stages.size(); ++s) {
          const sched::StageSeconds own = sched::SecondsOfStage(problem, stages[s]);
          text += fmt::format("\n      computes {:.4f}, sends {:.4f}, reduces {:.4f}", own.computes, own.sends,
                              sched::StageReductionSeconds(problem, stages[s]));
          if (s + 1 < stages.size()) {
            text += fmt::format(", moves {:.4f}", sched::TransferSeconds(problem, stages[s].devices,
                                                                         stages[s + 1].devices, stages[s + 1].first));
          }
        }
        far.emplace_back(ratio, std::move(text));
      }
      fmt::print(
          "closed form, {}: simulated seconds over it: 5th percentile {:.3f}, median {:.3f}, 95th {:.3f}, worst "
          "{:.3f}\n",
          asynchronous ? "asynchronous" : "synchronous, 4 micro-batches", Quantile(ratios, 0.05), Quantile(ratios, 0.5),
          Quantile(ratios, 0.95), Quantile(ratios, 1));
      std::ranges::sort(far);
      for (size_t k = 0; k < 3 && flags_.verbose; ++k) {
        fmt::print("    {}\n    {}\n", far[k].second, far[far.size() - 1 - k].second);
      }
    }
  }

  void Learning() {
    for (const bool paper : {false, true}) {
      const sched::DeviceProblem problem = sched::ProblemOf(ReadRequest(flags_, "vgg16", 64, 1));
      TappOptions options = OptionsOf(flags_, 0);
      options.paper = paper;
      std::vector<TappRound> rounds;
      const Outcome outcome =
          Solve(*MakeTapp(options, [&](const TappRound& round) { rounds.push_back(round); }), problem, 1);
      fmt::print("learning: vgg16, {}: {} rounds, {} simulations, {} of {} draws repaired, {:.1f} s, best {:.4f} s\n",
                 paper ? "the paper's settings" : "default settings", rounds.size(), outcome.solution.judged,
                 outcome.solution.repaired, rounds.size() * static_cast<size_t>(flags_.draws), outcome.took,
                 outcome.seconds);
      for (size_t r = 0; r < rounds.size(); r += std::max<size_t>(1, rounds.size() / 10)) {
        fmt::print("  round {:3} mean {:.4f} s, best {:.4f} s\n", rounds[r].round, rounds[r].mean_seconds,
                   rounds[r].best_seconds);
      }
    }
  }

 private:
  void OneRow(const std::string& title, const sched::DeviceProblem& problem) {
    fmt::print("table: {}: {} layers, {} cuts\n", title, problem.layers(), problem.cuts().size());
    const Outcome bsp = Solve(*planners_.Find("bsp", sched::Supply::kDevices), problem, 1);
    double cpu = problem.WorkOf(0, problem.layers(), 0).At(1);
    fmt::print("  {:22} {:9.4f} s\n", "one CPU node", cpu);
    const Outcome exact = Solve(*planners_.Find("exact", sched::Supply::kDevices), problem, 1);
    for (const char* name :
         {"bsp", "bsp-subset", "one-device", "pipe-torch", "pipedream", "random", "local", "exact"}) {
      Print(name, problem, Solve(*planners_.Find(name, sched::Supply::kDevices), problem, 1), bsp, exact);
    }
    for (const bool paper : {false, true}) {
      std::vector<double> seconds, took;
      Outcome last;
      int64_t repaired = 0;
      const int seeds = paper ? 1 : flags_.seeds;  // the paper's settings take a minute each
      for (int seed = 1; seed <= seeds; ++seed) {
        TappOptions options = OptionsOf(flags_, paper ? 0 : flags_.polish);
        options.paper = paper;
        last = Solve(*MakeTapp(options), problem, static_cast<uint64_t>(seed));
        seconds.push_back(last.seconds / exact.seconds - 1);
        took.push_back(last.took);
        repaired += last.solution.repaired;
      }
      Print(paper ? "tapp, paper's settings" : "tapp", problem, last, bsp, exact);
      fmt::print(
          "  {:22} above exact, {} seeds: median {:.2f} %, worst {:.2f} %; {} draws repaired; at most {:.1f} s\n", "",
          seeds, 100 * Quantile(seconds, 0.5), 100 * Quantile(seconds, 1), repaired, Quantile(took, 1));
    }
    std::fflush(stdout);
  }

  void Print(const std::string& name, const sched::DeviceProblem& problem, const Outcome& outcome, const Outcome& bsp,
             const Outcome& exact) {
    if (!outcome.solution.plan) {
      fmt::print("  {:22} does not fit\n", name);
      return;
    }
    std::string text = outcome.solution.explanation;
    text.pop_back();
    fmt::print(
        "  {:22} {:9.4f} s  {:5.2f} x BSP  {:+7.2f} % of exact  closed form {:.4f} s  communication {:4.1f} %  "
        "{:.2f} s  {}\n",
        name, outcome.seconds, bsp.seconds / outcome.seconds, 100 * (outcome.seconds / exact.seconds - 1),
        outcome.solution.model_seconds, 100 * NotComputing(problem, *outcome.solution.plan), outcome.took, text);
  }

  const Flags& flags_;
  sched::Registry planners_;
  std::vector<double> exact_took_;
  int tied_ = 0;
};

}  // namespace
}  // namespace medley::reproductions::tapp

int main(int argc, char** argv) {
  CLI::App app{"The planner tapp against others"};
  medley::reproductions::tapp::Flags flags;
  app.add_option("parts", flags.parts, "table, clusters, learning, closed");
  app.add_flag("--paper-only", flags.paper_only,
               "with table: only the paper's batch sizes, and the bandwidths as given");
  app.add_option("--row", flags.row, "with table: only this one, such as 'vgg16 batch 64 bandwidth x 10'");
  app.add_flag("--verbose", flags.verbose, "with closed: the pipelines that are farthest off");
  app.add_option("--models", flags.models, "folder of the layer tables");
  app.add_option("--cluster", flags.cluster);
  app.add_option("--seeds", flags.seeds)->capture_default_str();
  app.add_option("--clusters", flags.clusters)->capture_default_str();
  app.add_option("--calls", flags.calls, "simulations of tapp at most")->capture_default_str();
  app.add_option("--polish", flags.polish, "part of them for local search")->capture_default_str();
  app.add_option("--rate", flags.rate, "of Adam")->capture_default_str();
  app.add_option("--entropy", flags.entropy)->capture_default_str();
  app.add_option("--draws", flags.draws, "a round")->capture_default_str();
  app.add_option("--rounds", flags.rounds)->capture_default_str();
  app.add_option("--seed", flags.seed)->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  medley::reproductions::tapp::Bench bench(flags);
  for (const std::string& part : flags.parts) {
    if (part == "table") bench.Table();
    if (part == "clusters") bench.Clusters();
    if (part == "learning") bench.Learning();
    if (part == "closed") bench.ClosedForm();
  }
  return 0;
}
