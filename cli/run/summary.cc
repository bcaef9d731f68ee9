#include "cli/run/summary.h"

#include <fmt/core.h>

#include <cmath>
#include <map>
#include <string>

#include "cli/cluster/bill_view.h"
#include "cli/cluster/embedding_view.h"
#include "cli/once.h"
#include "cli/run/view.h"
#include "common/base/quantity.h"
#include "common/model/task.h"

namespace medley::cli {
namespace {

constexpr double kLeastSeconds = 5;  // of training, to tell a throughput

// Four digits behind the point, or six digits of a large number: errors are in the unit of the label.
std::string Figure(double value) {
  return std::abs(value) < 1000 ? fmt::format("{:.4f}", value) : fmt::format("{:.6g}", value);
}

// Which of the models was exported, and why.
void AddExported(const ops::ObservedStatus& observed, Summary& summary) {
  if (!observed.exported) return;
  const ops::ExportedStatus& exported = *observed.exported;
  std::string text = fmt::format("the {} one: step {}, epoch {}", exported.model == "Best" ? "best" : "last",
                                 exported.step, exported.epoch);
  const bool chosen = exported.model == "Best" && observed.best.has_value();
  const bool by_test = chosen && observed.best->data == "Test";
  if (chosen) {
    text += fmt::format("; {} {} on the {} data", observed.best->metric, Figure(observed.best->value),
                        by_test ? "test" : "validation");
  }
  summary.lines.push_back(fmt::format("{:<23} {}", "exported model", text));
  if (by_test && observed.evaluations.size() > 1) {
    summary.lines.push_back(fmt::format(
        "{:<23} the test data chose the model, so its figures may be too good: spec.data.validation chooses instead",
        "warning"));
  }
}

void CheckMetrics(const std::map<std::string, double>& metrics, const std::map<std::string, double>& expected,
                  Summary& summary) {
  const std::string data = metrics.contains("validation_samples") ? "validation" : "test";
  for (const auto& [name, value] : metrics) {
    if (model::IsSampleCount(name)) continue;
    std::string line = fmt::format("{:<23} {}", data + " " + name, Figure(value));
    if (const auto found = expected.find(name); found != expected.end()) {
      const bool at_least = !model::ImprovesByFalling(name);
      const double bound = found->second;
      line += fmt::format("  ({} {} expected)", at_least ? ">=" : "<=", Figure(bound));
      if (at_least ? value < bound : value > bound) {
        summary.failures.push_back(fmt::format("{} {} is {}, the scenario expects {} {}", data, name, Figure(value),
                                               at_least ? "at least" : "at most", Figure(bound)));
      }
    }
    summary.lines.push_back(line);
  }
  constexpr double kPoorCalibration = 0.05;  // as worker/scores/scores.h
  if (const auto error = metrics.find("calibrationError"); error != metrics.end() && error->second > kPoorCalibration) {
    summary.lines.push_back(fmt::format(
        "{:<23} probabilities differ from the rates of positives by {:.2f} on average, as weights of classes or too "
        "little training make them: use the order of the predictions rather than their size",
        "warning", error->second));
  }
  for (const auto& [name, bound] : expected) {
    if (metrics.contains(name)) continue;
    summary.failures.push_back(fmt::format("the scenario expects {}, but it was not measured", name));
  }
}

void Moves(const std::vector<ops::RescaleStatus>& moves, const char* what, int expected, Summary& summary) {
  for (const ops::RescaleStatus& move : moves) {
    summary.lines.push_back(fmt::format("{:<23} generation {} -> {} ({}), paused for {:.0f} ms{}", what,
                                        move.from_generation, move.to_generation, move.reason,
                                        move.pause_seconds * 1000, OfStart(move)));
  }
  if (static_cast<int>(moves.size()) < expected) {
    summary.failures.push_back(
        fmt::format("the scenario expects at least {} generation switches of kind {}, there were {}", expected, what,
                    moves.size()));
  }
}

}  // namespace

std::vector<PlanThroughput> ThroughputOfPlans(const std::vector<SamplePoint>& points) {
  std::vector<PlanThroughput> plans;
  const SamplePoint* first = nullptr;   // the first growth in the generation
  const SamplePoint* latest = nullptr;  // the latest growth
  for (const SamplePoint& point : points) {
    if (point.generation <= 0 || point.samples <= 0 || !point.whole) continue;
    if (plans.empty() || plans.back().generation != point.generation) {
      plans.push_back({point.generation, point.expected_throughput, point.simulated_throughput, 0});
      first = nullptr;
      latest = nullptr;
    }
    if (latest == nullptr) {
      latest = &point;
      continue;
    }
    if (point.samples <= latest->samples) continue;
    latest = &point;
    if (first == nullptr) {  // samples grow in steps: measured from one growth to another
      first = &point;
      continue;
    }
    const double seconds = latest->seconds - first->seconds;
    if (seconds < kLeastSeconds) continue;
    plans.back().measured = static_cast<double>(latest->samples - first->samples) / seconds;
  }
  std::erase_if(plans, [](const PlanThroughput& plan) { return plan.measured <= 0; });
  return plans;
}

Summary Summarise(const RunRecord& record, const Scenario& scenario) {
  Summary summary;
  const Snapshot& last = record.last;
  summary.lines.push_back(fmt::format("{:<23} {}", "condition",
                                      last.complete ? "Complete"
                                      : last.failed ? fmt::format("Failed ({})", last.failure)
                                                    : last.phase));
  if (last.failed) {
    summary.failures.emplace_back(WithoutReason(last.problem));
  } else if (!last.complete) {
    summary.failures.push_back("the job is not Complete" + (last.problem.empty() ? "" : ": " + last.problem));
  }
  if (last.complete) CheckMetrics(last.observed.metrics, scenario.expect.metrics, summary);
  if (last.complete && !last.of_program) AddExported(last.observed, summary);
  if (last.complete && last.of_program) {
    const int64_t asked = last.observed.last_checkpoint_step;
    summary.lines.push_back(
        fmt::format("{:<23} what the program has saved{}", "result",
                    asked > 0 ? fmt::format("; Medley has let it save at step {} and before", asked) : ""));
  }
  summary.lines.push_back(fmt::format("{:<23} {} of {}", "samples trained",
                                      Thousands(static_cast<double>(last.observed.samples)),
                                      Thousands(static_cast<double>(last.observed.samples_total))));
  if (!last.stopped_early.empty()) {
    summary.lines.push_back(fmt::format("{:<23} {}", "epochs", last.stopped_early));
  } else if (last.complete &&
             (last.observed.samples_total <= 0 || last.observed.samples != last.observed.samples_total)) {
    summary.failures.push_back(
        fmt::format("{} samples trained, but rows x epochs is {}", last.observed.samples, last.observed.samples_total));
  }
  if (last.observed.embeddings) {
    summary.lines.push_back(fmt::format("{:<23} {}", "embedding rows", EmbeddingSentence(*last.observed.embeddings)));
  }
  if (last.observed.tables) {
    summary.lines.push_back(fmt::format("{:<23} {}", "embedding tables", TablesSentence(*last.observed.tables)));
  }
  summary.lines.push_back(fmt::format("{:<23} {:.1f}", "seconds", record.seconds));
  for (const PlanThroughput& plan : ThroughputOfPlans(record.points)) {
    summary.lines.push_back(fmt::format("{:<23} generation {}: {} samples/s expected, {} measured ({:+.0f} %)",
                                        "throughput", plan.generation, Thousands(plan.expected),
                                        Thousands(plan.measured), 100 * (plan.measured / plan.expected - 1)));
    if (plan.simulated <= 0) continue;
    summary.lines.push_back(fmt::format("{:<23} generation {}: {} samples/s predicted, {} measured ({:+.0f} %)",
                                        "simulator", plan.generation, Thousands(plan.simulated),
                                        Thousands(plan.measured), 100 * (plan.measured / plan.simulated - 1)));
  }
  Moves(record.rescales, "rescale", record.nothing_to_move_to ? 0 : scenario.expect.rescales, summary);
  Moves(record.recoveries, "recovery", scenario.expect.recoveries, summary);
  Moves(record.returns, "return", 0, summary);
  const ops::CostStatus& cost = last.cost;
  std::string usd = base::FormatDecimal(cost.spent_usd, 6) + " spent";
  if (cost.saved_usd) {
    const bool less = *cost.saved_usd >= 0;
    usd += fmt::format("; training cost {} {} than with the first plan",
                       base::FormatDecimal(std::abs(*cost.saved_usd), 6), less ? "less" : "more");
  }
  summary.lines.push_back(fmt::format("{:<23} {}", "USD", usd));
  const std::string bill = last.goodput ? BillSentence(last.goodput->bill) : "";
  if (!bill.empty()) summary.lines.push_back(fmt::format("{:<23} {}", "spent for", bill));
  return summary;
}

}  // namespace medley::cli
