// Measures the planners in one thread and prints a JSON document to standard output:
//   planner_bench [--seeds 10] [--limit-seconds 60] [--root .] [exact] [pareto] [planners] [table2] [provision]
// exact: seconds and proofs; pareto: whole fronts; planners: cost relative to the optimum and seconds of every planner;
// table2: HeterPS' numbers of layers compared with brute force; provision: the methods to provision a schedule.
// tests/bench/run makes tables from its output.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/status.h"
#include "common/model/convert.h"
#include "medley/scheduler/v1/scheduler.pb.h"
#include "scheduler-service/planner/pareto.h"
#include "scheduler-service/profile/analytic.h"
#include "scheduler-service/provision/methods.h"
#include "tests/bench/many_types.h"
#include "tests/unit/scheduler-service/planner/scale_request.h"

namespace medley::sched {
namespace {

using Json = nlohmann::ordered_json;

struct Flags {
  std::vector<std::string> what;
  std::string root = ".";
  int seeds = 10;
  double limit_seconds = 60;  // per plan
};

// CPU seconds of this thread, which do not depend on other load of the machine.
double ProcessorSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double Quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const double at = q * static_cast<double>(values.size() - 1);
  const size_t below = static_cast<size_t>(at), above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - std::floor(at)) * (values[above] - values[below]);
}

class Bench {
 public:
  explicit Bench(const Flags& flags) : flags_(flags), registry_(BuiltinPlanners()) {}

  absl::StatusOr<Json> Run() {
    Json out = {{"seeds", flags_.seeds}, {"limitSeconds", flags_.limit_seconds}};
    const auto wanted = [&](const char* name) {
      return flags_.what.empty() || std::find(flags_.what.begin(), flags_.what.end(), name) != flags_.what.end();
    };
    if (wanted("exact")) MEDLEY_RETURN_IF_ERROR(BenchExact(out["exact"]));
    if (wanted("pareto")) MEDLEY_RETURN_IF_ERROR(BenchPareto(out["pareto"]));
    if (wanted("provision")) MEDLEY_RETURN_IF_ERROR(BenchProvision(out["provision"]));
    if (wanted("table2")) MEDLEY_RETURN_IF_ERROR(BenchTable2(out["table2"]));
    if (wanted("planners")) MEDLEY_RETURN_IF_ERROR(BenchPlanners(out["planners"]));
    return out;
  }

 private:
  struct Timed {
    Solution solution;
    double seconds = 0, processor = 0;
  };

  absl::StatusOr<Timed> Time(std::string_view planner, const Problem& problem, uint64_t seed, double limit) const {
    const base::SteadyTime begin = clock_.Steady();
    const double processor = ProcessorSeconds();
    Timed timed;
    MEDLEY_ASSIGN_OR_RETURN(timed.solution, registry_.Find(planner)->Solve(
                                                problem, seed, Budget(clock_, begin + base::FromSeconds(limit), {})));
    timed.processor = ProcessorSeconds() - processor;
    timed.seconds = base::ToSeconds(clock_.Steady() - begin);
    return timed;
  }

  template <typename Message>
  absl::StatusOr<Message> Read(const std::string& path) const {
    MEDLEY_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(flags_.root + "/" + path));
    Message message;
    MEDLEY_RETURN_IF_ERROR(model::ParseText(text, message));
    return message;
  }
  absl::StatusOr<model::PlanRequest> Request(const std::string& name) const {
    MEDLEY_ASSIGN_OR_RETURN(const auto message, Read<scheduler::v1::PlanRequest>("examples/plan/" + name + ".yaml"));
    return model::FromProto(message);
  }

  // Plans distinct requests, each `times` times.
  absl::Status ExactCase(const std::string& name, std::vector<model::PlanRequest> requests, int times,
                         Json& out) const {
    std::vector<double> seconds, processor;
    int complete = 0, feasible = 0;
    double gap = 0;
    size_t stages = 0;
    for (model::PlanRequest& request : requests) {
      MEDLEY_ASSIGN_OR_RETURN(const Problem problem, Problem::Compile(std::move(request)));
      for (int i = 0; i < times; ++i) {
        MEDLEY_ASSIGN_OR_RETURN(const Timed timed, Time("exact", problem, 1, flags_.limit_seconds));
        seconds.push_back(timed.seconds);
        processor.push_back(timed.processor);
        if (i > 0) continue;
        complete += timed.solution.complete ? 1 : 0;
        if (!timed.solution.best) continue;
        ++feasible;
        stages = std::max(stages, timed.solution.best->stages.size());
        gap = std::max(gap, 1 - *timed.solution.lower_bound / timed.solution.best->score.cost);
      }
    }
    out.push_back({{"case", name},
                   {"requests", requests.size()},
                   {"times", times},
                   {"feasible", feasible},
                   {"proven", complete},
                   {"mostGap", gap},
                   {"mostStages", stages},
                   {"seconds", {{"median", Quantile(seconds, 0.5)}, {"p99", Quantile(seconds, 0.99)}}},
                   {"processorSeconds", {{"median", Quantile(processor, 0.5)}, {"p99", Quantile(processor, 0.99)}}}});
    return absl::OkStatus();
  }

  absl::Status BenchExact(Json& out) const {
    MEDLEY_ASSIGN_OR_RETURN(const model::PlanRequest ctrdnn, Request("ctrdnn-16"));
    std::vector<model::PlanRequest> requests;
    for (int i = 0; i < 20; ++i) {
      requests.push_back(ctrdnn);
      requests.back().constraints.min_throughput *= 0.2 + 0.2 * i;
    }
    MEDLEY_RETURN_IF_ERROR(
        ExactCase("ctrdnn-16 x 2 types, minThroughput 0.2 to 4 times", std::move(requests), 50, out));
    const auto scale = [&](const std::string& name, const ScaleOptions& options) {
      std::vector<model::PlanRequest> of_seeds;
      for (int seed = 1; seed <= flags_.seeds; ++seed) {
        of_seeds.push_back(ScaleRequest(static_cast<uint64_t>(seed), options));
      }
      return ExactCase(name, std::move(of_seeds), 3, out);
    };
    MEDLEY_RETURN_IF_ERROR(scale("20 layers x 64 types", {.layers = 20, .types = 64}));
    MEDLEY_RETURN_IF_ERROR(scale("20 x 64, nearly equal types, 500,000 samples/s",
                                 {.layers = 20, .types = 64, .spread = 0.02, .noise = 0.01, .min_throughput = 5e5}));
    MEDLEY_RETURN_IF_ERROR(scale("20 x 64, many stages, quotas of 24 and 2, 300,000 samples/s", {.layers = 20,
                                                                                                 .types = 64,
                                                                                                 .noise = 1,
                                                                                                 .cpu_limit = 24,
                                                                                                 .gpu_limit = 2,
                                                                                                 .min_throughput = 3e5,
                                                                                                 .lookup_every = 2}));
    MEDLEY_RETURN_IF_ERROR(scale("16 x 4, limits of 10,000, all work divides",
                                 {.layers = 16, .types = 4, .cpu_limit = 10000, .gpu_limit = 10000, .divides = true}));
    MEDLEY_RETURN_IF_ERROR(scale("64 x 8, many stages, 1,500,000 samples/s",
                                 {.layers = 64, .types = 8, .noise = 1, .min_throughput = 1.5e6, .lookup_every = 2}));
    return scale("64 x 64, many stages", {.layers = 64, .types = 64, .noise = 1, .lookup_every = 2});
  }

  absl::Status BenchPareto(Json& out) const {
    for (const char* name : {"ctrdnn-16", "matchnet-16", "2emb-10", "nce-5"}) {
      MEDLEY_ASSIGN_OR_RETURN(model::PlanRequest request, Request(name));
      MEDLEY_ASSIGN_OR_RETURN(const Problem problem, Problem::Compile(std::move(request)));
      const double begin = ProcessorSeconds();
      const Front front =
          ExactFront(problem, Budget(clock_, clock_.Steady() + base::FromSeconds(flags_.limit_seconds), {}));
      out.push_back({{"model", name},
                     {"points", front.plans.size()},
                     {"complete", front.complete},
                     {"processorSeconds", ProcessorSeconds() - begin}});
    }
    return absl::OkStatus();
  }

  // Provisions the schedule of the optimum with every method, for several throughputs.
  absl::Status BenchProvision(Json& out) const {
    MEDLEY_ASSIGN_OR_RETURN(const model::PlanRequest ctrdnn, Request("ctrdnn-16"));
    for (const double factor : {0.2, 0.5, 1.0, 2.0, 4.0, 6.0}) {
      model::PlanRequest request = ctrdnn;
      request.constraints.min_throughput *= factor;
      MEDLEY_ASSIGN_OR_RETURN(const Problem problem, Problem::Compile(request));
      MEDLEY_ASSIGN_OR_RETURN(const Timed best, Time("exact", problem, 1, flags_.limit_seconds));
      if (!best.solution.best) continue;
      for (const ProvisionMethod& method : ProvisionMethods()) {
        const double begin = ProcessorSeconds();
        const auto plan = method.provision(problem, best.solution.best->stages);
        out.push_back({{"minThroughput", request.constraints.min_throughput},
                       {"method", method.name},
                       {"usd", plan ? Json(plan->score.cost) : Json()},
                       {"processorSeconds", ProcessorSeconds() - begin}});
      }
    }
    return absl::OkStatus();
  }

  absl::Status BenchTable2(Json& out) const {
    const auto hardware = HardwareCatalog::Builtin();
    MEDLEY_RETURN_IF_ERROR(hardware.status());
    double seconds_each = 0;  // per schedule with brute force
    for (const int types : {2, 4}) {
      for (const int layers : {8, 12, 16, 20}) {
        MEDLEY_ASSIGN_OR_RETURN(model::PlanRequest request, Request("ctrdnn-16"));
        MEDLEY_ASSIGN_OR_RETURN(const auto table,
                                Read<profile::v1::Model>("examples/models/ctrdnn-" + std::to_string(layers) + ".yaml"));
        MEDLEY_ASSIGN_OR_RETURN(request.model, model::FromProto(table));
        for (model::Resource& r : request.resources) r.hardware = r.name;
        MEDLEY_RETURN_IF_ERROR(AddAnalyticProfiles(request, *hardware));
        // BF(n) in the paper has n types in total, although the caption says otherwise: its time grows by n^4 with 4
        // more layers.
        MEDLEY_ASSIGN_OR_RETURN(const Problem problem, Problem::Compile(WithTypes(request, types, 1)));
        Json row = {{"layers", layers}, {"types", types}};
        const double schedules = std::pow(types, layers);
        const bool measured = schedules * seconds_each < flags_.limit_seconds;
        if (measured) {
          MEDLEY_ASSIGN_OR_RETURN(const Timed brute, Time("brute-force", problem, 1, 20 * flags_.limit_seconds));
          seconds_each = brute.processor / schedules;
          row["bruteUsd"] = brute.solution.best ? Json(brute.solution.best->score.cost) : Json();
        }
        row["bruteSeconds"] = schedules * seconds_each;
        row["bruteMeasured"] = measured;
        for (const char* planner : {"exact", "rl-lstm"}) {
          MEDLEY_ASSIGN_OR_RETURN(const Timed timed, Time(planner, problem, 1, flags_.limit_seconds));
          row[planner] = {{"seconds", timed.seconds},
                          {"processorSeconds", timed.processor},
                          {"usd", timed.solution.best ? Json(timed.solution.best->score.cost) : Json()}};
        }
        out.push_back(row);
      }
    }
    return absl::OkStatus();
  }

  absl::Status BenchPlanners(Json& out) const {
    for (const char* name : {"matchnet-16", "ctrdnn-16", "2emb-10", "nce-5"}) {
      MEDLEY_ASSIGN_OR_RETURN(const model::PlanRequest request, Request(name));
      std::vector<int> counts = {2, 4, 8};
      if (std::string_view(name) == "matchnet-16") counts = {2, 4, 8, 16, 32, 64};
      for (const int types : counts) MEDLEY_RETURN_IF_ERROR(OfModel(name, WithTypes(request, types, 1), out));
    }
    return absl::OkStatus();
  }

  absl::Status OfModel(const std::string& name, model::PlanRequest request, Json& out) const {
    MEDLEY_ASSIGN_OR_RETURN(const Problem problem, Problem::Compile(std::move(request)));
    MEDLEY_ASSIGN_OR_RETURN(const Timed exact, Time("exact", problem, 1, flags_.limit_seconds));
    if (!exact.solution.best) return base::FailedPrecondition("{} has no plan", name);
    const double optimum = exact.solution.best->score.cost;
    for (const char* planner :
         {"exact", "rl-lstm", "rl-rnn", "bayesian", "genetic", "greedy", "heuristic", "gpu-only", "cpu-only"}) {
      const std::string_view named = planner;
      const bool random = named.starts_with("rl-") || named == "bayesian" || named == "genetic";
      std::vector<double> above, seconds, processor;
      double slowest = std::numeric_limits<double>::infinity();
      int without = 0;
      for (int seed = 1; seed <= (random ? flags_.seeds : 1); ++seed) {
        MEDLEY_ASSIGN_OR_RETURN(const Timed timed,
                                Time(planner, problem, static_cast<uint64_t>(seed), flags_.limit_seconds));
        seconds.push_back(timed.seconds);
        processor.push_back(timed.processor);
        if (timed.solution.best) {
          above.push_back(timed.solution.best->score.cost / optimum - 1);
          slowest = std::min(slowest, timed.solution.best->score.throughput);
        } else {
          ++without;
        }
      }
      Json row = {{"model", name},
                  {"types", problem.types()},
                  {"planner", planner},
                  {"runs", seconds.size()},
                  {"withoutPlan", without},
                  {"seconds", Quantile(seconds, 0.5)},
                  {"processorSeconds", Quantile(processor, 0.5)}};
      if (!above.empty()) {
        row["above"] = {{"median", Quantile(above, 0.5)}, {"most", Quantile(above, 1)}};
        row["throughputOverLimit"] = slowest / problem.request().constraints.min_throughput;
      }
      out.push_back(row);
      std::fprintf(stderr, "planner_bench: %s\n", row.dump().c_str());
    }
    return absl::OkStatus();
  }

  const Flags& flags_;
  const Registry registry_;
  const base::SystemClock clock_;
};

}  // namespace
}  // namespace medley::sched

int main(int argc, char** argv) {
  CLI::App app("The figures of planning as JSON");
  medley::sched::Flags flags;
  app.add_option("what", flags.what, "exact, pareto, planners, table2, provision; default: all")
      ->check(CLI::IsMember({"exact", "pareto", "planners", "table2", "provision"}));
  app.add_option("--root", flags.root, "the repository")->capture_default_str();
  app.add_option("--seeds", flags.seeds, "of every random planner and generator")->check(CLI::Range(1, 1000));
  app.add_option("--limit-seconds", flags.limit_seconds, "of one plan")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  const auto out = medley::sched::Bench(flags).Run();
  if (!out.ok()) {
    std::fprintf(stderr, "planner_bench: %s\n", medley::base::Message(out.status()).c_str());
    return 1;
  }
  std::printf("%s\n", out->dump(1).c_str());
  return 0;
}
