// Operation-level plans by the simulator (HeteroG, section 6):
//   fit      the roofline's constants by the column EV-AR of Table 1, and the errors of all columns
//   tables   Tables 1, 2 and 4 with the frozen constants
//   large    the rows whose baselines are out of memory
//   search   the search against random draws, Metropolis and cross-entropy with equal numbers of simulations
//   order    operations by upward rank against the order of the model, in the best baseline and in the plan
//   brute    small random instances against all their plans
//   others   Figure 9: Horovod, FlexFlow, Post and HetPipe
//   ablation what each kind of decision gains
//   overlap  Figure 8: computation and communication at the same time
//   speed    milliseconds of a simulation
// docs/graph-planning.md has the figures.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/rng.h"
#include "common/base/status.h"
#include "reproductions/heterog/baselines.h"
#include "reproductions/heterog/bench/graph/ablation.h"
#include "reproductions/heterog/bench/graph/asked.h"
#include "reproductions/heterog/bench/graph/baselines.h"
#include "reproductions/heterog/bench/graph/brute_force.h"
#include "reproductions/heterog/bench/graph/busy.h"
#include "reproductions/heterog/bench/graph/testbed.h"
#include "reproductions/heterog/bench/graph/virtual_workers.h"
#include "reproductions/heterog/searches.h"
#include "scheduler-service/devices/device_simulator.h"
#include "scheduler-service/graph/balance.h"
#include "scheduler-service/graph/bound.h"
#include "scheduler-service/graph/graph_planners.h"
#include "scheduler-service/graph/search.h"
#include "scheduler-service/planning/candidate.h"
#include "scheduler-service/planning/registry.h"
#include "tests/unit/scheduler-service/graph/graphs.h"

namespace medley::reproductions::heterog {
namespace {

using reproductions::heterog::SearchByCrossEntropy;
using reproductions::heterog::SearchByMetropolis;
using reproductions::heterog::SearchRandomly;
using sched::ActionCount;
using sched::ActionName;
using sched::BoundOfGraph;
using sched::BucketSizes;
using sched::Budget;
using sched::DeviceProblem;
using sched::DeviceSimulator;
using sched::GraphQuestion;
using sched::GraphStrategy;
using sched::kForever;
using sched::kReplicaActions;
using sched::OperationGroups;
using sched::OrderBy;
using sched::RandomGraphProblem;
using sched::RandomStrategy;
using sched::SearchGraph;
using sched::TryBaselines;
using sched::Uniform;

// Fitted by `graph_bench fit --rounds 300` and frozen before the first table.
constexpr Roofline kFrozen = {1.13, 4.3e-4, 0.637};

struct Flags {
  std::vector<std::string> parts;
  std::string folder = "examples/graphs";
  std::vector<std::string> models;  // empty: all
  int64_t calls = 1000;
  int groups = 48;
  int seeds = 5;
  uint64_t seed = 1;  // of tables
  int instances = 200;
  int first_instance = 0;
  int brute_groups = 6;
  int rounds = 300;             // of the fit
  Roofline roofline = kFrozen;  // of all but the fit
};

bool Wanted(const Flags& flags, const std::string& model) {
  return flags.models.empty() || std::ranges::find(flags.models, model) != flags.models.end();
}

constexpr const char* kBaselines[] = {"EV-PS", "EV-AR", "CP-PS", "CP-AR"};

class GraphBench {
 public:
  explicit GraphBench(const Flags& flags) : flags_(flags) {}

  absl::Status Fit();
  absl::Status Tables();
  absl::Status Large();
  absl::Status Search();
  absl::Status Order();
  absl::Status Brute();
  absl::Status Others();
  absl::Status Ablations();
  absl::Status Overlap();
  absl::Status Speed();

 private:
  absl::StatusOr<model::Model> Graph(const std::string& name) {
    const auto known = graphs_.find(name);
    if (known != graphs_.end()) return known->second;
    MEDLEY_ASSIGN_OR_RETURN(model::Model model, ReadGraph(flags_.folder, name));
    return graphs_[name] = std::move(model);
  }
  // Seconds of a baseline with the constants; buckets of a sixteenth, so that fitting is quick.
  absl::StatusOr<double> Quick(const PaperRow& row, size_t size, int how, const Roofline& roofline) {
    MEDLEY_ASSIGN_OR_RETURN(const model::Model model, Graph(row.model));
    MEDLEY_ASSIGN_OR_RETURN(const DeviceProblem problem, OnTestbed(model, row.batch[size], size == 1, roofline));
    Asked asked(problem, flags_.groups, 1, 2);
    return asked.timer.Seconds(Uniform(asked.q, problem.devices() + how, BucketSizes(problem)[2], OrderBy::kReady));
  }
  absl::StatusOr<double> Loss(const Roofline& roofline) {
    double sum = 0;
    for (const PaperRow& row : PaperRows()) {
      if (!Wanted(flags_, row.model)) continue;
      MEDLEY_ASSIGN_OR_RETURN(const double seconds, Quick(row, 0, 1, roofline));
      sum += std::min(3.0, std::abs(std::log(seconds / row.baselines[1][0])));
    }
    return sum;
  }

  const Flags flags_;
  const base::SystemClock clock_;
  std::map<std::string, model::Model> graphs_;
};

absl::Status GraphBench::Fit() {
  base::Rng rng(1);
  Roofline best;
  MEDLEY_ASSIGN_OR_RETURN(double loss, Loss(best));
  const auto change = [&](double value, double size, double low, double high) {
    return std::clamp(value * std::exp(size * rng.Uniform(-1, 1)), low, high);
  };
  for (int round = 0; round < flags_.rounds; ++round) {
    const double size = 1.0 - 0.9 * round / flags_.rounds;
    Roofline other = best;
    other.efficiency = change(other.efficiency, size, 0.05, 1.8);
    other.launch_seconds = change(other.launch_seconds, size, 1e-6, 1e-3);
    other.link_efficiency = change(other.link_efficiency, size, 0.02, 1);
    MEDLEY_ASSIGN_OR_RETURN(const double now, Loss(other));
    if (now >= loss) continue;
    loss = now;
    best = other;
  }
  fmt::print("constants: efficiency {:.3g}, launch {:.3g} s, links {:.3g}\n\n", best.efficiency, best.launch_seconds,
             best.link_efficiency);
  fmt::print("| model | GPUs | baseline | paper | simulated | error |\n|---|---|---|---|---|---|\n");
  std::vector<double> fitted, held_out, allreduce, servers;
  for (const PaperRow& row : PaperRows()) {
    if (!Wanted(flags_, row.model)) continue;
    for (size_t size = 0; size < 2; ++size) {
      for (size_t how = 0; how < 4; ++how) {
        MEDLEY_ASSIGN_OR_RETURN(const double seconds, Quick(row, size, static_cast<int>(how), best));
        const double error = seconds / row.baselines[how][size] - 1;
        const bool fits = size == 0 && how == 1;
        (fits ? fitted : how % 2 == 1 ? allreduce : servers).push_back(std::abs(error));
        if (!fits) held_out.push_back(std::abs(error));
        fmt::print("| {} | {} | {} | {} | {:.3f} | {:+.0f} % |\n", row.model, size == 0 ? 8 : 12, kBaselines[how],
                   row.baselines[how][size], seconds, 100 * error);
      }
    }
  }
  fmt::print("\nmedian error: fitted {:.1f} %, held out {:.1f} %: allreduce {:.1f} %, parameter servers {:.1f} %\n",
             100 * Middle(fitted), 100 * Middle(held_out), 100 * Middle(allreduce), 100 * Middle(servers));
  return absl::OkStatus();
}

std::string HoldsUp(const sched::ProgramBound& bound) {
  if (bound.path >= bound.seconds()) return "longest path";
  return bound.compute >= bound.seconds() ? bound.device : bound.link_name;
}

absl::Status GraphBench::Tables() {
  fmt::print(
      "| model | GPUs | graph | EV-PS | EV-AR | CP-PS | CP-AR | gain | paper's | to the bound | to the plan's bound | "
      "what holds it up | s | balanced | gain | next step | gain | balanced copies |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
  for (size_t size = 0; size < 2; ++size) {
    std::vector<double> gains, balancing, overlapping, to_bound;
    for (const PaperRow& row : PaperRows()) {
      if (!Wanted(flags_, row.model)) continue;
      MEDLEY_ASSIGN_OR_RETURN(const model::Model model, Graph(row.model));
      MEDLEY_ASSIGN_OR_RETURN(const DeviceProblem problem,
                              OnTestbed(model, row.batch[size], size == 1, flags_.roofline));
      const auto begin = std::chrono::steady_clock::now();
      Asked asked(problem, flags_.groups, flags_.seed, flags_.calls);
      TryBaselines(asked.q);
      double best = kForever, paper = kForever;
      std::string columns;
      for (int how = 0; how < 4; ++how) {
        const double seconds = BaselineSeconds(asked.q, how, OrderBy::kReady);
        best = std::min(best, seconds);
        paper = std::min(paper, row.baselines[static_cast<size_t>(how)][size]);
        columns += fmt::format(" {:.3f} |", seconds);
      }
      SearchGraph(asked.q);
      const double found = asked.timer.best_seconds();
      if (found == kForever) {
        fmt::print("| {} ({}) | {} | {} |||||||||\n", row.model, row.batch[size], size == 0 ? 8 : 12,
                   asked.timer.why());
        continue;
      }
      const double spent = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      gains.push_back(best / found - 1);
      DeviceSimulator evaluator(problem, std::stop_token());
      MEDLEY_ASSIGN_OR_RETURN(const model::ExecutionPlan plan, asked.timer.Plan(asked.timer.best()));
      MEDLEY_ASSIGN_OR_RETURN(const sched::ProgramBound bound, evaluator.Bound(plan));
      to_bound.push_back(found / bound.seconds());
      asked.timer.Allow(sched::kMostBalanceSimulations);
      BalanceShares(asked.q);
      const double balanced = asked.timer.best_seconds();
      asked.timer.Allow(sched::kMostBalanceSimulations);
      const double copies = BalancedCopies(asked.q);
      sched::Overlapping next_step(*asked.judge, asked.limits);
      MEDLEY_ASSIGN_OR_RETURN(const auto next, OverlapBest(asked.q, balanced, asked.limits, next_step));
      const double with_next = next ? next->found.figures.seconds : balanced;
      balancing.push_back(best / balanced - 1);
      overlapping.push_back(best / with_next - 1);
      fmt::print(
          "| {} ({}) | {} | {:.3f} |{} {:+.1f} % | {:+.1f} % | {:.2f} | {:.3f} | {} | {:.1f} | {:.3f} | {:+.1f} % | "
          "{:.3f} | {:+.1f} % | {:.3f} |\n",
          row.model, row.batch[size], size == 0 ? 8 : 12, found, columns, 100 * gains.back(),
          100 * (paper / row.heterog[size] - 1), found / BoundOfGraph(problem).seconds(), to_bound.back(),
          HoldsUp(bound), spent, balanced, 100 * balancing.back(), with_next, 100 * overlapping.back(), copies);
      std::map<std::string, int> parts;
      for (const int group : asked.groups.group_of) {
        ++parts[ActionName(problem, asked.timer.best().actions[static_cast<size_t>(group)])];
      }
      std::string text;
      for (const auto& [name, count] : parts)
        text += fmt::format(" {} {:.0f} %", name, 100.0 * count / problem.layers());
      std::fprintf(stderr, "%s:%s; buckets %lld, %s\n", row.model.c_str(), text.c_str(),
                   static_cast<long long>(asked.timer.best().bucket_bytes),
                   sched::OrderName(asked.timer.best().order).c_str());
      std::fflush(stdout);
    }
    fmt::print(
        "\nmedian gain over the best baseline, {} GPUs: {:.1f} %, least {:.1f} %; with balanced shares {:.1f} %; with "
        "reductions during the next step too {:.1f} %; the steps take {:.3f} times the bounds of their plans, in the "
        "median\n\n",
        size == 0 ? 8 : 12, 100 * Middle(gains), gains.empty() ? 0 : 100 * std::ranges::min(gains),
        100 * Middle(balancing), 100 * Middle(overlapping), Middle(to_bound));
  }
  return absl::OkStatus();
}

absl::Status GraphBench::Large() {
  fmt::print("| model | GPUs | graph | paper | baselines that fit |\n|---|---|---|---|---|\n");
  for (size_t size = 0; size < 2; ++size) {
    for (const PaperRow& row : LargeRows()) {
      if (!Wanted(flags_, row.model)) continue;
      MEDLEY_ASSIGN_OR_RETURN(const model::Model model, Graph(row.model));
      MEDLEY_ASSIGN_OR_RETURN(const DeviceProblem problem,
                              OnTestbed(model, row.batch[size], size == 1, flags_.roofline));
      Asked asked(problem, flags_.groups, 1, flags_.calls);
      TryBaselines(asked.q);
      std::string fit;
      for (int how = 0; how < 4; ++how) {
        const double seconds =
            std::min(BaselineSeconds(asked.q, how, OrderBy::kReady), BaselineSeconds(asked.q, how, OrderBy::kRank));
        if (seconds < kForever) fit += fmt::format(" {} {:.3f}", kBaselines[how], seconds);
      }
      SearchGraph(asked.q);
      const double found = asked.timer.best_seconds();
      fmt::print("| {} ({}) | {} | {} | {} |{} |\n", row.model, row.batch[size], size == 0 ? 8 : 12,
                 found < kForever ? fmt::format("{:.3f}", found) : asked.timer.why(), row.heterog[size],
                 fit.empty() ? " none" : fit);
      std::fflush(stdout);
    }
  }
  return absl::OkStatus();
}

absl::Status GraphBench::Search() {
  const std::vector<std::pair<const char*, void (*)(const GraphQuestion&)>> searches = {
      {"local search", SearchGraph},
      {"random", SearchRandomly},
      {"Metropolis", SearchByMetropolis},
      {"cross-entropy", SearchByCrossEntropy}};
  fmt::print("{} simulations, {} seeds; medians (worst), relative to the best baseline with either order\n\n| model |",
             flags_.calls, flags_.seeds);
  for (const auto& [name, search] : searches) fmt::print(" {} |", name);
  fmt::print("\n|---|---|---|---|---|\n");
  for (const PaperRow& row : PaperRows()) {
    if (!Wanted(flags_, row.model)) continue;
    MEDLEY_ASSIGN_OR_RETURN(const model::Model model, Graph(row.model));
    MEDLEY_ASSIGN_OR_RETURN(const DeviceProblem problem, OnTestbed(model, row.batch[1], true, flags_.roofline));
    fmt::print("| {} |", row.model);
    for (const auto& [name, search] : searches) {
      std::vector<double> found;
      for (int seed = 1; seed <= flags_.seeds; ++seed) {
        Asked asked(problem, flags_.groups, static_cast<uint64_t>(seed), flags_.calls);
        TryBaselines(asked.q);
        const double baseline = asked.timer.best_seconds();
        search(asked.q);
        found.push_back(asked.timer.best_seconds() / baseline);
      }
      fmt::print(" {:.3f} ({:.3f}) |", Middle(found), std::ranges::max(found));
      std::fflush(stdout);
    }
    fmt::print("\n");
  }
  return absl::OkStatus();
}

// Seconds of a strategy's plan, the median of some random orders; kForever: most do not fit.
absl::StatusOr<double> RandomOrderSeconds(const DeviceProblem& problem, const OperationGroups& groups,
                                          GraphStrategy strategy) {
  strategy.order = OrderBy::kRank;
  MEDLEY_ASSIGN_OR_RETURN(model::ExecutionPlan plan, BuildGraphPlan(problem, groups, strategy));
  DeviceSimulator evaluator(problem, std::stop_token());
  std::vector<double> found;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    base::Rng rng(seed);
    for (size_t i = plan.order.size(); i > 1; --i) std::swap(plan.order[i - 1], plan.order[rng.Below(i)]);
    const auto seconds = evaluator.Seconds(plan);
    if (!seconds.ok() && !absl::IsResourceExhausted(seconds.status())) return seconds.status();
    found.push_back(seconds.value_or(kForever));
  }
  return Middle(found);
}

absl::Status GraphBench::Order() {
  fmt::print(
      "Seconds by rank over those of another order, of the best baseline and of the plan\n\n"
      "| model | baseline: FIFO | model's | repaired | random | plan: FIFO | model's | repaired | random |\n"
      "|---|---|---|---|---|---|---|---|---|\n");
  for (const PaperRow& row : PaperRows()) {
    if (!Wanted(flags_, row.model)) continue;
    MEDLEY_ASSIGN_OR_RETURN(const model::Model model, Graph(row.model));
    MEDLEY_ASSIGN_OR_RETURN(const DeviceProblem problem, OnTestbed(model, row.batch[0], false, flags_.roofline));
    Asked asked(problem, flags_.groups, 1, flags_.calls);
    TryBaselines(asked.q);
    std::string text;
    for (const bool search : {false, true}) {
      if (search) {
        asked.timer.Allow(flags_.calls);
        SearchGraph(asked.q);
      }
      if (asked.timer.best().actions.empty()) break;
      asked.timer.Allow(4);
      GraphStrategy strategy = asked.timer.best();
      std::map<OrderBy, double> seconds;
      for (const OrderBy order : sched::kOrders) {
        strategy.order = order;
        seconds[order] = asked.timer.Seconds(strategy);
      }
      MEDLEY_ASSIGN_OR_RETURN(const double random, RandomOrderSeconds(problem, asked.groups, strategy));
      const double rank = seconds[OrderBy::kRank];
      text += fmt::format(" {:.4f} | {:.4f} | {:.4f} | {} |", rank / seconds[OrderBy::kReady],
                          rank / seconds[OrderBy::kModel], rank / seconds[OrderBy::kRepaired],
                          random == kForever ? "does not fit" : fmt::format("{:.4f}", rank / random));
    }
    fmt::print("| {} |{}\n", row.model, text.empty() ? " " + asked.timer.why() : text);
    std::fflush(stdout);
  }
  return absl::OkStatus();
}

absl::Status GraphBench::Brute() {
  constexpr int kDevices = 3;
  std::vector<double> gaps;
  int64_t timed = 0;
  for (int instance = flags_.first_instance; instance < flags_.first_instance + flags_.instances; ++instance) {
    base::Rng rng(base::Mix64(static_cast<uint64_t>(instance)));
    const int operations = flags_.brute_groups + static_cast<int>(rng.Below(4));
    const DeviceProblem problem = RandomGraphProblem(rng, kDevices, operations);
    Asked search(problem, flags_.brute_groups, 1, flags_.calls);
    TryBaselines(search.q);
    SearchGraph(search.q);
    Asked all(problem, flags_.brute_groups, 1, int64_t{1} << 40);
    const double found = search.timer.best_seconds();
    gaps.push_back(found / BruteForce(all.q).Best(found) - 1);
    timed += all.timer.calls();
    const auto text = [](const GraphStrategy& strategy) {
      return fmt::format("{} buckets of {} {}", fmt::join(strategy.actions, " "), strategy.bucket_bytes,
                         OrderName(strategy.order));
    };
    fmt::print(stderr, "instance {}: gap {:.3f} %, {} plans timed: {}; {}\n", instance, 100 * gaps.back(),
               all.timer.calls(), text(search.timer.best()), text(all.timer.best()));
  }
  const auto optimal = std::ranges::count_if(gaps, [](double gap) { return gap < 1e-6; });
  fmt::print(
      "{} random instances of {} groups on {} devices, {} simulations: optimal {:.1f} %, median gap {:.2f} %, worst "
      "{:.2f} %; {} plans timed by brute force\n",
      gaps.size(), flags_.brute_groups, kDevices, flags_.calls,
      100.0 * static_cast<double>(optimal) / static_cast<double>(gaps.size()), 100 * Middle(gaps),
      100 * std::ranges::max(gaps), timed);
  return absl::OkStatus();
}

// Figure 9: what other systems decide, normalised by Horovod. HetPipe is asynchronous: once with virtual workers that
// are alike, once with any whose transfers to servers of parameters take no time.
absl::Status GraphBench::Others() {
  fmt::print(
      "| model (batch), GPUs | Horovod, s | graph | FlexFlow | Post | HetPipe | HetPipe, unlike workers | machines of "
      "each |\n|---|---|---|---|---|---|---|---|\n");
  const Budget limits(clock_, base::SteadyTime::max(), {});
  sched::Registry planners;
  planners.Add(sched::MakeGraph({.groups = flags_.groups, .calls = flags_.calls}));
  for (auto& planner : reproductions::heterog::MakeBaselines({.groups = flags_.groups, .calls = flags_.calls})) {
    planners.Add(std::move(planner));
  }
  for (size_t size = 0; size < 2; ++size) {
    for (const PaperRow& row : PaperRows()) {
      if (!Wanted(flags_, row.model)) continue;
      MEDLEY_ASSIGN_OR_RETURN(const model::Model model, Graph(row.model));
      double horovod = 0;
      std::string text;
      for (const char* name : {"horovod", "graph", "graph-mcmc", "graph-post", "hetpipe"}) {
        const bool pipeline = std::string_view(name) == "hetpipe";
        MEDLEY_ASSIGN_OR_RETURN(const DeviceProblem problem,
                                OnTestbed(model, row.batch[size], size == 1, flags_.roofline, pipeline));
        const auto solution = planners.Find(name, sched::Supply::kDevices)->Solve(problem, 1, limits);
        const bool found = solution.ok() && solution->plan;
        if (std::string_view(name) == "horovod") {
          horovod = found ? solution->figures.seconds : 0;
          text = found ? fmt::format(" {:.3f} |", horovod) : " - |";
        } else {
          text += found && horovod > 0 ? fmt::format(" {:.2f} |", horovod / solution->figures.seconds) : " - |";
        }
        if (!found) {
          std::fprintf(stderr, "%s, %s: %s\n", row.model.c_str(), name,
                       solution.ok() ? solution->notes.back().c_str() : base::ToString(solution.status()).c_str());
        }
      }
      MEDLEY_ASSIGN_OR_RETURN(const DeviceProblem asynchronous,
                              OnTestbed(model, row.batch[size], size == 1, flags_.roofline, true));
      MEDLEY_ASSIGN_OR_RETURN(const VirtualWorkers unlike, BestVirtualWorkers(asynchronous, limits));
      std::vector<std::string> machines;
      for (const auto& worker : unlike.workers) machines.push_back(fmt::format("{}", fmt::join(worker, " + ")));
      const bool known = horovod > 0 && unlike.seconds < kForever;
      fmt::print("| {} ({}), {} |{} {} | {} |\n", row.model, row.batch[size], size == 0 ? 8 : 12, text,
                 known ? fmt::format("{:.2f}", horovod / unlike.seconds) : "-", fmt::join(machines, ", "));
      std::fflush(stdout);
    }
  }
  return absl::OkStatus();
}

absl::Status GraphBench::Overlap() {
  fmt::print(
      "| model (batch), 8 GPUs | plan | step, s | computes | communicates | sum / step |\n|---|---|---|---|---|---|\n");
  for (const PaperRow& row : PaperRows()) {
    if (!Wanted(flags_, row.model)) continue;
    MEDLEY_ASSIGN_OR_RETURN(const model::Model model, Graph(row.model));
    MEDLEY_ASSIGN_OR_RETURN(const DeviceProblem problem, OnTestbed(model, row.batch[0], false, flags_.roofline));
    Asked asked(problem, flags_.groups, 1, flags_.calls);
    const auto print = [&](const std::string& name, const GraphStrategy& strategy) -> absl::Status {
      MEDLEY_ASSIGN_OR_RETURN(const model::ExecutionPlan plan, BuildGraphPlan(problem, asked.groups, strategy));
      MEDLEY_ASSIGN_OR_RETURN(const Busy busy, BusyIn(problem, plan));
      fmt::print("| {} ({}) | {} | {:.3f} | {:.3f} | {:.3f} | {:.2f} |\n", row.model, row.batch[0], name, busy.step,
                 busy.computes, busy.communicates, (busy.computes + busy.communicates) / busy.step);
      std::fflush(stdout);
      return absl::OkStatus();
    };
    TryBaselines(asked.q);
    if (asked.timer.best().actions.empty()) continue;  // NASNet
    for (int how = 0; how < kReplicaActions; ++how) {
      GraphStrategy best;
      double least = kForever;
      for (const int64_t bytes : BucketSizes(problem)) {
        GraphStrategy strategy = Uniform(asked.q, problem.devices() + how, bytes, OrderBy::kReady);
        const double seconds = asked.timer.Seconds(strategy);
        if (seconds >= least) continue;
        least = seconds;
        best = std::move(strategy);
      }
      if (least < kForever) MEDLEY_RETURN_IF_ERROR(print(kBaselines[how], best));
    }
    SearchGraph(asked.q);
    MEDLEY_RETURN_IF_ERROR(print("graph", asked.timer.best()));
  }
  return absl::OkStatus();
}

absl::Status GraphBench::Ablations() {
  for (size_t size = 0; size < 2; ++size) {
    std::vector<std::vector<double>> gains;  // by kind of decision
    for (const PaperRow& row : PaperRows()) {
      if (!Wanted(flags_, row.model)) continue;
      MEDLEY_ASSIGN_OR_RETURN(const model::Model model, Graph(row.model));
      MEDLEY_ASSIGN_OR_RETURN(const DeviceProblem problem,
                              OnTestbed(model, row.batch[size], size == 1, flags_.roofline));
      MEDLEY_ASSIGN_OR_RETURN(const Ablation ablation, Ablate(problem, flags_.groups, flags_.calls));
      if (ablation.rows.empty()) continue;  // NASNet
      if (gains.empty()) {
        gains.resize(ablation.rows.size());
        fmt::print("| gain over the best baseline, {} GPUs |", size == 0 ? 8 : 12);
        for (const Ablation::Row& each : ablation.rows) fmt::print(" {} |", each.name);
        fmt::print("\n|---|---|---|---|---|---|---|---|\n");
      }
      fmt::print("| {} ({}) |", row.model, row.batch[size]);
      for (size_t i = 0; i < gains.size(); ++i) {
        gains[i].push_back(ablation.baseline / ablation.rows[i].seconds - 1);
        fmt::print(" {:.1f} % |", 100 * gains[i].back());
      }
      fmt::print("\n");
      std::fflush(stdout);
    }
    fmt::print("| median |");
    for (const std::vector<double>& each : gains) fmt::print(" {:.1f} % |", 100 * Middle(each));
    fmt::print("\n\n");
  }
  return absl::OkStatus();
}

absl::Status GraphBench::Speed() {
  fmt::print(
      "| model | operations | GPUs | milliseconds of a simulation: replicas | random plans |\n|---|---|---|---|---|\n");
  for (const char* name : {"vgg19", "resnet200", "bert-48"}) {
    if (!Wanted(flags_, name)) continue;
    MEDLEY_ASSIGN_OR_RETURN(const model::Model model, Graph(name));
    MEDLEY_ASSIGN_OR_RETURN(const DeviceProblem problem, OnTestbed(model, 48, true, flags_.roofline));
    Asked asked(problem, flags_.groups, 1, 1'000'000);
    const auto time = [&](auto&& run) {
      const auto begin = std::chrono::steady_clock::now();
      const int64_t before = asked.timer.calls();
      run();
      const double spent = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      return 1000 * spent / static_cast<double>(asked.timer.calls() - before);
    };
    const double simple = time([&] { TryBaselines(asked.q); });
    const double random = time([&] {
      for (int i = 0; i < 50; ++i) asked.timer.Seconds(RandomStrategy(asked.rng, problem, asked.groups));
    });
    fmt::print("| {} | {} | 12 | {:.1f} | {:.1f} |\n", name, problem.layers(), simple, random);
  }
  return absl::OkStatus();
}

int Main(const Flags& flags) {
  GraphBench bench(flags);
  const std::map<std::string, absl::Status (GraphBench::*)()> parts = {
      {"fit", &GraphBench::Fit},       {"tables", &GraphBench::Tables},      {"large", &GraphBench::Large},
      {"search", &GraphBench::Search}, {"order", &GraphBench::Order},        {"brute", &GraphBench::Brute},
      {"others", &GraphBench::Others}, {"ablation", &GraphBench::Ablations}, {"overlap", &GraphBench::Overlap},
      {"speed", &GraphBench::Speed}};
  for (const std::string& part : flags.parts) {
    const auto found = parts.find(part);
    const absl::Status status =
        found == parts.end() ? base::InvalidArgument("no part '{}'", part) : (bench.*found->second)();
    if (status.ok()) continue;
    std::fprintf(stderr, "graph_bench: %s: %s\n", part.c_str(), base::ToString(status).c_str());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace medley::reproductions::heterog

int main(int argc, char** argv) {
  CLI::App app{"Operation-level plans by the simulator"};
  medley::reproductions::heterog::Flags flags;
  app.add_option("parts", flags.parts, "fit, tables, large, search, order, brute, others, ablation, overlap, speed")
      ->required();
  app.add_option("--graphs", flags.folder, "folder of the graphs");
  app.add_option("--models", flags.models, "names, with commas between them; default: all")->delimiter(',');
  app.add_option("--calls", flags.calls, "simulations of a search");
  app.add_option("--groups", flags.groups, "of operations, at most");
  app.add_option("--seeds", flags.seeds);
  app.add_option("--seed", flags.seed, "of tables");
  app.add_option("--instances", flags.instances, "of brute");
  app.add_option("--first-instance", flags.first_instance, "of brute, to divide a long run");
  app.add_option("--brute-groups", flags.brute_groups, "of an instance of brute");
  app.add_option("--rounds", flags.rounds, "of fit");
  app.add_option("--efficiency", flags.roofline.efficiency, "of GPUs, relative to the datasheet profiles");
  app.add_option("--launch", flags.roofline.launch_seconds, "seconds of a launch");
  app.add_option("--links", flags.roofline.link_efficiency, "of links between machines");
  CLI11_PARSE(app, argc, argv);
  return medley::reproductions::heterog::Main(flags);
}
