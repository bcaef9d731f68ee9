// What benches of planners share: planning with a clock, requests of examples/, and rows of JSON.
#pragma once

#include <absl/status/statusor.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/model/forward.h"
#include "scheduler-service/planning/candidate.h"
#include "scheduler-service/planning/registry.h"

namespace medley::bench {

using Json = nlohmann::ordered_json;

// CPU seconds of this thread, which do not depend on other load of the machine.
double ProcessorSeconds();

double Quantile(std::vector<double> values, double q);

struct PlannerBenchOptions {
  std::string root = ".";  // the repository
  int seeds = 10;
  double limit_seconds = 60;  // per plan
};

// In one thread. `registry` must outlive it.
class PlannerBench {
 public:
  PlannerBench(const PlannerBenchOptions& options, const sched::Registry& registry)
      : options_(options), registry_(registry) {}

  struct Timed {
    sched::Candidate solution;
    double seconds = 0, processor = 0;
  };
  absl::StatusOr<Timed> Time(std::string_view planner, const sched::Problem& problem, uint64_t seed,
                             double limit) const;

  // For examples/plan.
  absl::StatusOr<model::PlanRequest> Request(const std::string& name) const;

  // Seconds and proofs of `exact`.
  absl::Status Exact(Json& out) const;
  // Whole Pareto fronts.
  absl::Status Pareto(Json& out) const;
  // Cost relative to the optimum, and seconds, of each of `planners` for four models with 2 to 64 types. Those of
  // `random` are asked with each seed.
  absl::Status Planners(const std::vector<std::string>& planners, const std::vector<std::string>& random,
                        Json& out) const;

  const PlannerBenchOptions& options() const { return options_; }

 private:
  // Whole answers, with the simulator's choice and the alternatives, each `times` times.
  absl::Status AnswerCase(const std::string& name, std::vector<model::PlanRequest> requests, int times,
                          Json& out) const;
  absl::Status ExactCase(const std::string& name, std::vector<model::PlanRequest> requests, int times, Json& out) const;
  absl::Status OfModel(const std::string& name, model::PlanRequest request, const std::vector<std::string>& planners,
                       const std::vector<std::string>& random, Json& out) const;

  const PlannerBenchOptions options_;
  const sched::Registry& registry_;
  const base::SystemClock clock_;
};

}  // namespace medley::bench
