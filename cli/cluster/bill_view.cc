#include "cli/cluster/bill_view.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "cli/format.h"
#include "cli/table.h"
#include "common/goodput/bill.h"
#include "operator/api/job_status.h"

namespace medley::cli {
namespace {

using goodput::Amounts;
using goodput::Category;

std::string Label(Category category) {
  switch (category) {
    case Category::kWaiting:
      return "waiting for nodes";
    case Category::kStartUp:
      return "start-up";
    case Category::kDataWait:
      return "waiting for data";
    case Category::kTraining:
      return "training";
    case Category::kCheckpoint:
      return "checkpoints";
    case Category::kEvaluation:
      return "evaluation";
    case Category::kMove:
      return "moves";
    case Category::kRecovery:
      return "recoveries";
    case Category::kLost:
      return "trained again";
    case Category::kIdle:
      return "idle";
  }
  return "";
}

// What the switches that the status shows add up to.
std::string Switches(const ops::JobStatus& status, bool recovery) {
  int count = 0;
  double pause = 0;
  for (const ops::RescaleStatus& rescale : status.rescales) {
    if (rescale.recovery != recovery) continue;
    ++count;
    pause += rescale.pause_seconds;
  }
  if (count == 0) return recovery ? "units stood still after a loss" : "units stood still for another plan";
  if (recovery) return fmt::format("{} {}, {:.1f} s", count, count == 1 ? "recovery" : "recoveries", pause);
  return fmt::format("{}, {:.1f} s", Counted(count, "move"), pause);
}

std::string Lost(const ops::JobStatus& status) {
  int64_t steps = 0;
  for (const ops::RescaleStatus& rescale : status.rescales) steps += rescale.lost_steps;
  return steps > 0 ? Counted(steps, "step") + " rolled back" : "steps rolled back";
}

// Samples for a dollar: what the plan said, and what it was.
std::string Training(const ops::JobStatus& status, double usd) {
  const auto& promised = status.goodput->promised;
  const int64_t samples = status.observed ? status.observed->samples : 0;
  if (!promised || promised->throughput <= 0 || samples <= 0 || usd <= 0) return "";
  const double planned = promised->usd_per_hour / 3600 / promised->throughput * 1e6;
  const double was = usd / static_cast<double>(samples) * 1e6;
  return fmt::format("{} USD per million samples, {} planned", Usd(was), Usd(planned));
}

std::string Reason(const ops::JobStatus& status, Category category, double usd) {
  switch (category) {
    case Category::kWaiting:
      return "units were paid before all had nodes";
    case Category::kStartUp:
      return "images, processes, data, profiles";
    case Category::kDataWait:
      return "samples came later than they were needed";
    case Category::kTraining:
      return Training(status, usd);
    case Category::kCheckpoint:
      return "training stood still while state was saved";
    case Category::kEvaluation:
      return status.observed && !status.observed->evaluations.empty()
                 ? Counted(static_cast<int64_t>(status.observed->evaluations.size()), "evaluation")
                 : "";
    case Category::kMove:
      return Switches(status, false);
    case Category::kRecovery:
      return Switches(status, true);
    case Category::kLost:
      return Lost(status);
    case Category::kIdle:
      return "standing by, or until pods ended";
  }
  return "";
}

// The part of the promise that the job has come to; nullopt: nothing was promised.
std::optional<double> PromisedSoFar(const ops::JobStatus& status) {
  if (!status.goodput->promised) return std::nullopt;
  const bool known = status.observed && status.observed->samples_total > 0;
  if (status.conditions.IsTrue(ops::kCompleteCondition) || !known) return status.goodput->promised->usd;
  const double part =
      static_cast<double>(status.observed->samples) / static_cast<double>(status.observed->samples_total);
  return status.goodput->promised->usd * std::clamp(part, 0.0, 1.0);
}

std::string Signed(double usd) { return (usd < 0 ? "-" : "+") + Usd(std::abs(usd)); }

void AddTable(const Table& table, std::vector<std::string>& lines) {
  for (std::string& line : Lines(table.Text())) lines.push_back(std::move(line));
}

void AddPools(const goodput::Bill& bill, std::vector<std::string>& lines) {
  Table table({"pool", "unit-seconds", "USD", "training"});
  for (const auto& [name, pool] : bill.pools) {
    const double usd = pool.usd.Sum();
    const double seconds = pool.seconds.Sum();
    if (seconds <= 0) continue;
    const double useful = usd > 0 ? pool.usd[Category::kTraining] / usd : pool.seconds[Category::kTraining] / seconds;
    table.Add({name == goodput::kCoordinatorPool ? "(coordinator)" : name, fmt::format("{:.1f}", seconds), Usd(usd),
               fmt::format("{:.1f} %", 100 * useful)});
  }
  AddTable(table, lines);
}

}  // namespace

std::string BillSentence(const goodput::Bill& bill) {
  constexpr size_t kShown = 3;
  const Amounts usd = bill.Usd();
  const Amounts amounts = usd.Sum() > 0 ? usd : bill.Seconds();
  if (amounts.Sum() <= 0) return "";
  std::vector<Category> others;
  for (const Category category : goodput::kCategories) {
    if (category != Category::kTraining && amounts[category] > 0) others.push_back(category);
  }
  std::ranges::stable_sort(others, [&](Category a, Category b) { return amounts[a] > amounts[b]; });
  std::string text = fmt::format("{:.1f} % useful training", 100 * bill.Share());
  for (size_t i = 0; i < std::min(kShown, others.size()); ++i) {
    text +=
        fmt::format("{} {} {:.1f} %", i == 0 ? ";" : ",", Label(others[i]), 100 * amounts[others[i]] / amounts.Sum());
  }
  return text;
}

std::vector<std::string> BillLines(const kube::Object& job) {
  const ops::JobStatus status = ops::JobStatus::FromJson(job.At("/status"));
  const std::string name = job.key().ToString();
  if (!status.goodput || status.goodput->bill.Seconds().Sum() <= 0)
    return {"job " + name + " has paid for nothing yet"};
  const goodput::Bill& bill = status.goodput->bill;
  const Amounts seconds = bill.Seconds();
  const Amounts usd = bill.Usd();
  const std::optional<double> promised = PromisedSoFar(status);
  std::vector<std::string> lines = {
      fmt::format("job {} has cost {} USD for {:.1f} unit-seconds; {:.1f} % was useful training", name, Usd(usd.Sum()),
                  seconds.Sum(), 100 * bill.Share())};
  if (promised) {
    lines.push_back(fmt::format(
        "its first plan promised {} USD for the whole job{}", Usd(status.goodput->promised->usd),
        *promised == status.goodput->promised->usd ? "" : fmt::format(", {} USD for what is done", Usd(*promised))));
  }
  lines.emplace_back();
  Table table({"for", "unit-seconds", "USD", "share", "promised", "difference", "why"});
  const double whole = usd.Sum() > 0 ? usd.Sum() : seconds.Sum();
  for (const Category category : goodput::kCategories) {
    const bool training = category == Category::kTraining;
    if (seconds[category] <= 0 && !training) continue;
    const double part = usd.Sum() > 0 ? usd[category] : seconds[category];
    const double plan = training && promised ? *promised : 0;
    table.Add({Label(category), fmt::format("{:.1f}", seconds[category]), Usd(usd[category]),
               fmt::format("{:.1f} %", 100 * part / whole), promised ? Usd(plan) : "-",
               promised ? Signed(usd[category] - plan) : "-", Reason(status, category, usd[category])});
  }
  table.Add({"sum", fmt::format("{:.1f}", seconds.Sum()), Usd(usd.Sum()), "100.0 %", promised ? Usd(*promised) : "-",
             promised ? Signed(usd.Sum() - *promised) : "-", ""});
  AddTable(table, lines);
  lines.emplace_back();
  AddPools(bill, lines);
  return lines;
}

}  // namespace medley::cli
