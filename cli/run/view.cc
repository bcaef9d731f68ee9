#include "cli/run/view.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "common/base/quantity.h"

namespace medley::cli {
namespace {

std::string Cut(const std::string& line, int width) {
  // Bytes are columns, because frames contain only ASCII.
  return static_cast<int>(line.size()) <= width ? line : line.substr(0, static_cast<size_t>(std::max(0, width)));
}

std::string AlternativeLine(const ops::PlanStatus::Alternative& other, const ops::PlanStatus& plan) {
  if (!other.reason.empty()) return fmt::format("  {:<24} not possible: {}", other.label, other.reason);
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
  if (!plan.alternatives.empty()) lines.push_back("  for comparison, on a single pool:");
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
  lines.push_back(Bar(view.progress_percent, std::clamp(width - 10, 10, 60)));
  lines.push_back(ProgressLine(view));
  lines.emplace_back();
  const size_t shown = std::min<size_t>(messages.size(), 8);
  for (size_t i = messages.size() - shown; i < messages.size(); ++i) lines.push_back(messages[i]);
  for (std::string& line : lines) line = Cut(line, width);
  return lines;
}

}  // namespace medley::cli
