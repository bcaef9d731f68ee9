#include "cli/run/summary.h"

#include <fmt/core.h>

#include "cli/run/view.h"
#include "common/base/quantity.h"

namespace medley::cli {
namespace {

// Mean samples/s before the plan of `generation` was in force or, with `after`, from then on.
double GenerationThroughput(const std::vector<SamplePoint>& points, int64_t generation, bool after) {
  const SamplePoint* first = nullptr;
  const SamplePoint* last = nullptr;
  for (const SamplePoint& point : points) {
    if (point.samples <= 0 || (after ? point.generation < generation : point.generation >= generation)) continue;
    if (first == nullptr) first = &point;
    // Training ended when the number of samples stopped growing.
    if (last == nullptr || point.samples > last->samples) last = &point;
  }
  if (first == nullptr || last->seconds <= first->seconds) return 0;
  return static_cast<double>(last->samples - first->samples) / (last->seconds - first->seconds);
}

void CheckMetric(const Snapshot& last, const std::string& name, std::optional<double> bound, bool at_least,
                 Summary& summary) {
  const auto it = last.observed.metrics.find(name);
  if (it == last.observed.metrics.end()) {
    if (bound) summary.failures.push_back(fmt::format("the scenario expects {}, but it was not measured", name));
    return;
  }
  std::string line = fmt::format("test {:<18} {:.4f}", name, it->second);
  if (bound) {
    line += fmt::format("  ({} {:.4f} expected)", at_least ? ">=" : "<=", *bound);
    if (at_least ? it->second < *bound : it->second > *bound) {
      summary.failures.push_back(fmt::format("test {} is {:.4f}, the scenario expects {} {:.4f}", name, it->second,
                                             at_least ? "at least" : "at most", *bound));
    }
  }
  summary.lines.push_back(line);
}

void Moves(const std::vector<ops::RescaleStatus>& moves, const char* what, int expected, Summary& summary) {
  for (const ops::RescaleStatus& move : moves) {
    summary.lines.push_back(fmt::format("{:<23} generation {} -> {} ({}), paused for {:.0f} ms", what,
                                        move.from_generation, move.to_generation, move.reason,
                                        move.pause_seconds * 1000));
  }
  if (static_cast<int>(moves.size()) < expected) {
    summary.failures.push_back(
        fmt::format("the scenario expects at least {} generation switches of kind {}, there were {}", expected, what,
                    moves.size()));
  }
}

}  // namespace

double Throughput(const std::vector<SamplePoint>& points, double from_seconds, double to_seconds) {
  const SamplePoint* first = nullptr;
  const SamplePoint* last = nullptr;
  for (const SamplePoint& point : points) {
    if (point.seconds < from_seconds || point.seconds > to_seconds) continue;
    if (first == nullptr) first = &point;
    last = &point;
  }
  if (first == nullptr || last->seconds <= first->seconds) return 0;
  return static_cast<double>(last->samples - first->samples) / (last->seconds - first->seconds);
}

Summary Summarise(const RunRecord& record, const Scenario& scenario) {
  Summary summary;
  const Snapshot& last = record.last;
  summary.lines.push_back(fmt::format("{:<23} {}", "condition",
                                      last.complete ? "Complete"
                                      : last.failed ? "Failed: " + last.problem
                                                    : last.phase));
  if (!last.complete) {
    summary.failures.push_back("the job is not Complete" + (last.problem.empty() ? "" : ": " + last.problem));
  }
  CheckMetric(last, "auc", scenario.expect.auc, true, summary);
  CheckMetric(last, "log_loss", scenario.expect.log_loss, false, summary);
  summary.lines.push_back(fmt::format("{:<23} {} of {}", "samples trained",
                                      Thousands(static_cast<double>(last.observed.samples)),
                                      Thousands(static_cast<double>(last.observed.samples_total))));
  if (last.observed.samples_total <= 0 || last.observed.samples != last.observed.samples_total) {
    summary.failures.push_back(
        fmt::format("{} samples trained, but rows x epochs is {}", last.observed.samples, last.observed.samples_total));
  }
  summary.lines.push_back(fmt::format("{:<23} {:.1f}", "seconds", record.seconds));
  if (!record.rescales.empty()) {
    const int64_t generation = record.rescales.front().to_generation;
    summary.lines.push_back(fmt::format("{:<23} {} samples/s before, {} after the rescale", "throughput",
                                        Thousands(GenerationThroughput(record.points, generation, false)),
                                        Thousands(GenerationThroughput(record.points, generation, true))));
  } else {
    summary.lines.push_back(
        fmt::format("{:<23} {} samples/s", "throughput", Thousands(Throughput(record.points, 0, record.seconds))));
  }
  Moves(record.rescales, "rescale", scenario.expect.rescales, summary);
  Moves(record.recoveries, "recovery", scenario.expect.recoveries, summary);
  Moves(record.returns, "return", 0, summary);
  const ops::CostStatus& cost = last.cost;
  summary.lines.push_back(fmt::format("{:<23} {} spent; the first plan would have cost {}", "USD",
                                      base::FormatDecimal(cost.spent_usd, 6),
                                      base::FormatDecimal(cost.spent_usd + cost.saved_usd, 6)));
  return summary;
}

}  // namespace medley::cli
