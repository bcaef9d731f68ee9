#include "cli/run/view.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "cli/cluster/embedding_view.h"
#include "cli/table.h"
#include "common/base/quantity.h"
#include "common/model/task.h"

namespace medley::cli {
namespace {

constexpr size_t kShownEvaluations = 6;

std::string Cut(const std::string& line, int width) {
  // Bytes are columns, because frames contain only ASCII.
  return static_cast<int>(line.size()) <= width ? line : line.substr(0, static_cast<size_t>(std::max(0, width)));
}

std::string AlternativeLine(const ops::PlanStatus::Alternative& other, const ops::PlanStatus& plan) {
  if (!other.reason.empty()) return fmt::format("  {:<24} not possible: {}", other.label, other.reason);
  if (other.usd_per_hour <= 0)
    return fmt::format("  {:<48} {:>10} samples/s", other.label, Thousands(other.throughput));
  std::string line = fmt::format("  {:<24} {:>10} samples/s {:>10} USD/h", other.label, Thousands(other.throughput),
                                 Usd(other.usd_per_hour));
  if (other.usd_total > 0) line += fmt::format(" {:>12} USD", Usd(other.usd_total));
  if (other.usd_total > 0 && plan.usd_total > 0)
    line += fmt::format("  ({:+.0f} %)", 100 * (other.usd_total / plan.usd_total - 1));
  return line;
}

std::string Bar(double percent, int width) {
  const int full = static_cast<int>(std::clamp(percent, 0.0, 100.0) / 100 * width);
  return "[" + std::string(static_cast<size_t>(full), '#') + std::string(static_cast<size_t>(width - full), '.') + "]";
}

}  // namespace

std::vector<std::string> PlanTable(const ops::PlanStatus& plan) {
  std::vector<std::string> lines;
  lines.push_back(fmt::format("plan of generation {} from planner {}: {} samples/s expected, {} USD/h{}",
                              plan.generation, plan.planner, WithSpread(plan.throughput, plan.throughput_spread),
                              Usd(plan.usd_per_hour),
                              plan.usd_total > 0 ? ", " + Usd(plan.usd_total) + " USD for the remaining samples" : ""));
  lines.push_back(fmt::format("  {:<7} {:<22} {:<16} {:>5} {:>12}", "stage", "layers", "pool", "units", "samples/s"));
  for (size_t i = 0; i < plan.stages.size(); ++i) {
    const ops::PlanStatus::Stage& stage = plan.stages[i];
    lines.push_back(fmt::format("  {:<7} {:<22} {:<16} {:>5} {:>12}", i, stage.layers, stage.pool, stage.units,
                                stage.throughput > 0 ? Thousands(stage.throughput) : "-"));
  }
  if (plan.servers > 0) {
    lines.push_back(
        fmt::format("  {:<7} {:<22} {:<16} {:>5} {:>12}", "servers", "", plan.server_pool, plan.servers, "-"));
  }
  if (plan.trainers_with_rows > 0) {
    lines.push_back(fmt::format("  {:<7} {:<22} {:<16} {:>5} {:>12}", "rows", "", "(in the trainers)",
                                plan.trainers_with_rows, "-"));
  }
  for (const ops::PlanStatus::Stage& stage : plan.stages) {
    if (stage.tables.empty()) continue;
    lines.push_back(fmt::format("  {:<7} {:<22} {}", "tables", stage.layers, TablesText(stage.tables)));
  }
  // Those of a job with spec.objective.fastest have no price.
  const bool fastest = std::ranges::any_of(
      plan.alternatives, [](const auto& other) { return other.reason.empty() && other.usd_per_hour <= 0; });
  if (!plan.alternatives.empty()) {
    lines.push_back(fastest ? "  for comparison:" : "  for comparison, on a single pool:");
  }
  for (const ops::PlanStatus::Alternative& other : plan.alternatives)
    lines.push_back("  " + AlternativeLine(other, plan));
  return lines;
}

std::string ProgressLine(const Snapshot& view) {
  return fmt::format("{:>4.0f} %  {} of {} samples  {} samples/s  loss {:.4f}  {} USD", view.progress_percent,
                     Thousands(static_cast<double>(view.observed.samples)),
                     Thousands(static_cast<double>(view.observed.samples_total)), Thousands(view.observed.throughput),
                     view.observed.loss, Usd(view.cost.spent_usd));
}

std::string CurveLine(const ops::EvaluationStatus& evaluation) {
  std::string line = fmt::format("epoch {}, step {}:", evaluation.epochs, evaluation.step);
  const char* before = " ";
  for (const auto& [name, value] : evaluation.metrics) {
    if (model::IsSampleCount(name)) continue;
    line += fmt::format("{}{} {:.4f}", before, name, value);
    before = ", ";
  }
  if (evaluation.loss) line += fmt::format("; training loss {:.4f}", *evaluation.loss);
  return line;
}

std::vector<std::string> CurveTable(const std::vector<ops::EvaluationStatus>& evaluations, size_t most) {
  if (evaluations.empty()) return {};
  std::vector<std::string> header = {"  epoch", "step", "training loss"};
  for (const auto& [name, value] : evaluations.back().metrics) {
    if (!model::IsSampleCount(name)) header.push_back(name);
  }
  Table table(header);
  for (size_t i = evaluations.size() - std::min(most, evaluations.size()); i < evaluations.size(); ++i) {
    const ops::EvaluationStatus& at = evaluations[i];
    std::vector<std::string> row = {fmt::format("  {}", at.epochs), std::to_string(at.step),
                                    at.loss ? fmt::format("{:.4f}", *at.loss) : "-"};
    for (size_t column = row.size(); column < header.size(); ++column) {
      const auto found = at.metrics.find(header[column]);
      row.push_back(found == at.metrics.end() ? "-" : fmt::format("{:.4f}", found->second));
    }
    table.Add(std::move(row));
  }
  return Lines(table.Text());
}

std::string OfStart(const ops::RescaleStatus& move) {
  if (move.start_seconds <= 0) return "";
  return fmt::format(" ({:.0f} ms of it from the program's start to its first step)", move.start_seconds * 1000);
}

std::vector<std::string> Frame(const Snapshot& view, const std::vector<std::string>& messages, double seconds,
                               int width) {
  std::vector<std::string> lines;
  lines.push_back(fmt::format("medley  {}  {:.0f} s", view.phase.empty() ? "Starting" : view.phase, seconds));
  lines.emplace_back();
  if (view.plan) {
    for (std::string& line : PlanTable(*view.plan)) lines.push_back(std::move(line));
  } else {
    lines.emplace_back("no plan yet");
  }
  lines.emplace_back();
  lines.push_back(fmt::format("  {:<20} {:>14} {:>8}", "pool", "USD/unit-hour", "units"));
  for (const PoolView& pool : view.pools) {
    lines.push_back(fmt::format("  {:<20} {:>14} {:>8}", pool.name,
                                pool.usd_per_unit_hour > 0 ? Usd(pool.usd_per_unit_hour) : "-",
                                fmt::format("{}/{}", pool.used, pool.limit)));
  }
  lines.emplace_back();
  if (std::vector<std::string> curve = CurveTable(view.observed.evaluations, kShownEvaluations); !curve.empty()) {
    for (std::string& line : curve) lines.push_back(std::move(line));
    lines.emplace_back();
  }
  lines.push_back(Bar(view.progress_percent, std::clamp(width - 10, 10, 60)));
  lines.push_back(ProgressLine(view));
  lines.emplace_back();
  const size_t shown = std::min<size_t>(messages.size(), 8);
  for (size_t i = messages.size() - shown; i < messages.size(); ++i) lines.push_back(messages[i]);
  for (std::string& line : lines) line = Cut(line, width);
  return lines;
}

}  // namespace medley::cli
