#include "scheduler-service/cost/evaluate.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/base/quantity.h"
#include "common/base/status.h"

namespace medley::sched {
namespace {

std::string Number(double value) { return base::FormatDecimal(value, value >= 1000 ? 0 : value >= 10 ? 1 : 4); }

std::string LayerNames(const Problem& problem, int first, int last) {
  const auto name = [&](int i) {
    const std::string& given = problem.request().model.layers[static_cast<size_t>(i)].name;
    return given.empty() ? fmt::format("layer {}", i) : given;
  };
  return first == last ? name(first) : name(first) + ".." + name(last);
}

void CheckMemory(const Problem& problem, const std::vector<StageChoice>& stages, std::vector<model::Reason>& out) {
  for (const StageChoice& s : stages) {
    if (problem.Allowed(s.first, s.last, s.type)) continue;
    const model::Resource& type = problem.type(s.type);
    const double needed = problem.LocalBytes(s.first, s.last, s.type);
    out.push_back(
        {"memory", type.name, needed, type.memory_bytes,
         fmt::format("{} need {} bytes on every unit of {}, which has {}: use a type with more memory, or split these "
                     "layers over several stages",
                     LayerNames(problem, s.first, s.last), Number(needed), type.name, Number(type.memory_bytes))});
  }
}

void CheckLimits(const Problem& problem, const std::vector<StageChoice>& stages, int server_units,
                 std::vector<model::Reason>& out) {
  const std::vector<int> used = UnitsByType(problem, stages, server_units);
  for (int t = 0; t < problem.types(); ++t) {
    const int units = used[static_cast<size_t>(t)];
    if (units <= problem.limit(t)) continue;
    const int servers = t == problem.server_type() ? server_units : 0;
    const std::string with = servers > 0 ? fmt::format(" ({} of them parameter servers)", servers) : "";
    out.push_back({"limit", problem.type(t).name, static_cast<double>(units), static_cast<double>(problem.limit(t)),
                   fmt::format("needs {} units of {}{}, but only {} may be used: raise the limit of {} to {}", units,
                               problem.type(t).name, with, problem.limit(t), problem.type(t).name, units)});
  }
}

void CheckUnits(const Problem& problem, const std::vector<StageChoice>& stages, std::vector<model::Reason>& out) {
  const model::Constraints& c = problem.request().constraints;
  int total = 0;
  for (const StageChoice& s : stages) {
    total += s.units;
    if (s.units > 1 && problem.TablesIn(s.first, s.last, s.type).OnDevice()) {
      out.push_back({"maxUnits", problem.type(s.type).name, static_cast<double>(s.units), 1.0,
                     fmt::format("{} have their tables on the GPU of one unit, not of {}",
                                 LayerNames(problem, s.first, s.last), s.units)});
    }
    if (s.units >= c.min_units) continue;
    out.push_back({"minUnits", problem.type(s.type).name, static_cast<double>(c.min_units),
                   static_cast<double>(s.units),
                   fmt::format("{} have {} units, minUnits asks for {}", LayerNames(problem, s.first, s.last), s.units,
                               c.min_units)});
  }
  if (c.max_units > 0 && total > c.max_units) {
    out.push_back(
        {"maxUnits", "", static_cast<double>(total), static_cast<double>(c.max_units),
         fmt::format("needs {} trainers in all, maxUnits allows {}: raise maxUnits to {}", total, c.max_units, total)});
  }
}

void CheckGoals(const Problem& problem, const Score& score, double seconds, std::vector<model::Reason>& out) {
  const model::Constraints& c = problem.request().constraints;
  if (c.min_throughput > 0 && score.throughput < c.min_throughput * (1 - kTolerance)) {
    out.push_back({"minThroughput", "", c.min_throughput, score.throughput,
                   fmt::format("reaches {} samples/s, minThroughput asks for {}", Number(score.throughput),
                               Number(c.min_throughput))});
  }
  if (c.deadline_seconds > 0 && seconds > c.deadline_seconds * (1 + kTolerance)) {
    out.push_back({"deadline", "", c.deadline_seconds, seconds,
                   fmt::format("takes {} s, the deadline is in {} s: allow {} s or ask for fewer samples",
                               Number(seconds), Number(c.deadline_seconds), Number(std::ceil(seconds)))});
  }
  if (c.max_cost_per_hour > 0 && score.hourly > c.max_cost_per_hour * (1 + kTolerance)) {
    out.push_back({"maxCostPerHour", "", score.hourly, c.max_cost_per_hour,
                   fmt::format("costs {} USD/h, maxCostPerHour is {}: raise it to {}", Number(score.hourly),
                               Number(c.max_cost_per_hour), Number(score.hourly))});
  }
  if (c.budget_usd > 0 && score.cost > c.budget_usd * (1 + kTolerance)) {
    out.push_back({"budget", "", score.cost, c.budget_usd,
                   fmt::format("costs {} USD in all, the budget is {}: raise it to {} or ask for fewer samples",
                               Number(score.cost), Number(c.budget_usd), Number(score.cost))});
  }
}

}  // namespace

std::vector<int> UnitsByType(const Problem& problem, const std::vector<StageChoice>& stages, int server_units) {
  std::vector<int> used(static_cast<size_t>(problem.types()), 0);
  for (const StageChoice& s : stages) used[static_cast<size_t>(s.type)] += s.units;
  if (server_units > 0) used[static_cast<size_t>(problem.server_type())] += server_units;
  return used;
}

Score ScoreOf(const Problem& of, const std::vector<StageChoice>& stages) {
  const Problem problem = of.ForStages(static_cast<int>(stages.size()));
  Score score;
  score.throughput = std::numeric_limits<double>::infinity();
  ServerLoad load;
  for (size_t i = 0; i < stages.size(); ++i) {
    const StageChoice& s = stages[i];
    score.throughput = std::min(score.throughput, problem.Throughput(problem.TermsIn(stages, i), s.units));
    load.Add(problem.Servers(s.first, s.last, s.type));
    score.hourly += problem.price(s.type) * s.units;
  }
  score.server_units = problem.ServerUnits(load, score.throughput);
  score.hourly += problem.server_price() * score.server_units;
  score.cost = problem.Cost(score.hourly, score.throughput);
  return score;
}

Evaluation Evaluate(const Problem& problem, const std::vector<StageChoice>& stages) {
  const Score score = ScoreOf(problem, stages);
  const Problem working = problem.ForStages(1), filling = problem.ForStages(static_cast<int>(stages.size()));
  Evaluation out;
  for (size_t i = 0; i < stages.size(); ++i) {
    const StageChoice& s = stages[i];
    const PlacedTerms terms = working.TermsIn(stages, i);
    if (problem.rows_in_trainers() && problem.PullsRows(s.first, s.last, s.type)) {
      out.plan.trainers_with_rows += s.units;
    }
    // The throughput of a stage without work is infinite. The API needs a finite number, so report the pipeline's.
    const double throughput = filling.Throughput(filling.TermsIn(stages, i), s.units);
    out.plan.stages.push_back({s.first, s.last, problem.type(s.type).name, s.units,
                               std::isfinite(throughput) ? throughput : score.throughput, terms.ComputeSeconds(s.units),
                               terms.CommSeconds(s.units), problem.TablesIn(s.first, s.last, s.type)});
  }
  out.plan.server_units = score.server_units;
  out.plan.throughput = score.throughput;
  out.plan.cost_usd = score.cost;
  out.plan.cost_per_hour = score.hourly;
  out.plan.execution_seconds = problem.total_samples() / score.throughput;
  CheckMemory(problem, stages, out.violations);
  CheckLimits(problem, stages, score.server_units, out.violations);
  CheckUnits(problem, stages, out.violations);
  CheckGoals(problem, score, out.plan.execution_seconds, out.violations);
  return out;
}

}  // namespace medley::sched
