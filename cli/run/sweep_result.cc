#include "cli/run/sweep_result.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "cli/table.h"
#include "common/model/task.h"

namespace medley::cli {
namespace {

constexpr const char* kPreferred[] = {"auc", "accuracy", "r2", "mse", "mae", "logLoss"};
constexpr size_t kLongestMessage = 160;

bool IsBetter(double a, double b, const std::string& metric) {
  return model::ImprovesByFalling(metric) ? a < b : a > b;
}

const char* StatusText(TrialResult::Status status) {
  switch (status) {
    case TrialResult::Status::kWaiting:
      return "waiting";
    case TrialResult::Status::kRunning:
      return "running";
    case TrialResult::Status::kComplete:
      return "complete";
    case TrialResult::Status::kDidNotComplete:
      return "failed";
    case TrialResult::Status::kStopped:
      return "stopped";
  }
  return "";
}

std::string Shortened(const std::string& text) {
  return text.size() <= kLongestMessage ? text : text.substr(0, kLongestMessage) + "...";
}

// Indices in the order of the table.
std::vector<size_t> Ranking(const std::vector<TrialResult>& results, const std::string& metric) {
  std::vector<size_t> order(results.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) {
    if (!results[a].value || !results[b].value) return results[a].value.has_value() && !results[b].value.has_value();
    return IsBetter(*results[a].value, *results[b].value, metric);
  });
  return order;
}

}  // namespace

std::string SweepMetric(const std::string& wanted, const kube::Object& job, const Snapshot& view) {
  if (!wanted.empty()) return model::MetricKey(wanted);
  if (const std::string stopping = job.String("/spec/training/earlyStopping/metric"); !stopping.empty()) {
    return model::MetricKey(stopping);
  }
  for (const char* name : kPreferred) {
    if (view.observed.metrics.contains(name)) return name;
    for (const ops::EvaluationStatus& evaluation : view.observed.evaluations) {
      if (evaluation.metrics.contains(name)) return name;
    }
  }
  return "";
}

void TakeResult(const Snapshot& view, const std::string& metric, TrialResult& result) {
  result.value.reset();
  result.best_epoch = 0;
  const auto take = [&](const std::map<std::string, double>& metrics, int epoch) {
    const auto found = metrics.find(metric);
    if (found == metrics.end() || (result.value && !IsBetter(found->second, *result.value, metric))) return;
    result.value = found->second;
    result.best_epoch = epoch;
  };
  for (const ops::EvaluationStatus& evaluation : view.observed.evaluations) take(evaluation.metrics, evaluation.epochs);
  if (!result.value) take(view.observed.metrics, 0);
  if (view.complete) result.status = TrialResult::Status::kComplete;
  if (view.failed) {
    result.status = TrialResult::Status::kDidNotComplete;
    result.message = view.problem;
  }
}

std::optional<size_t> BestTrial(const std::vector<TrialResult>& results, const std::string& metric) {
  std::optional<size_t> best;
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].status != TrialResult::Status::kComplete || !results[i].value) continue;
    if (!best || IsBetter(*results[i].value, *results[*best].value, metric)) best = i;
  }
  return best;
}

std::string SweepTable(const std::vector<TrialResult>& results, const std::vector<std::string>& names,
                       const std::string& metric) {
  std::vector<std::string> header = {"TRIAL"};
  header.insert(header.end(), names.begin(), names.end());
  for (const char* name : {"", "BEST EPOCH", "SECONDS", "STATUS"}) header.emplace_back(name);
  header[names.size() + 1] = metric.empty() ? "METRIC" : metric;
  Table table(header);
  for (const size_t i : Ranking(results, metric)) {
    const TrialResult& result = results[i];
    std::vector<std::string> row = {result.trial.name};
    for (const auto& [field, value] : result.trial.settings) row.push_back(kube::Dump(value));
    row.push_back(result.value ? fmt::format("{:.4f}", *result.value) : "-");
    row.push_back(result.best_epoch > 0 ? std::to_string(result.best_epoch) : "-");
    row.push_back(result.seconds > 0 ? fmt::format("{:.1f}", result.seconds) : "-");
    row.push_back(StatusText(result.status) + (result.message.empty() ? "" : ": " + Shortened(result.message)));
    table.Add(std::move(row));
  }
  return table.Text();
}

kube::Json SweepJson(const std::vector<TrialResult>& results, const std::string& metric) {
  kube::Json trials = kube::Json::array();
  for (const size_t i : Ranking(results, metric)) {
    const TrialResult& result = results[i];
    kube::Json settings = kube::Json::object();
    for (const auto& [field, value] : result.trial.settings) settings["spec." + field] = value;
    kube::Json trial = {{"name", result.trial.name},
                        {"settings", std::move(settings)},
                        {"status", StatusText(result.status)},
                        {"seconds", result.seconds}};
    if (result.value) trial["value"] = *result.value;
    if (result.best_epoch > 0) trial["bestEpoch"] = result.best_epoch;
    if (!result.message.empty()) trial["message"] = result.message;
    trials.push_back(std::move(trial));
  }
  kube::Json json = {{"metric", metric}, {"trials", std::move(trials)}};
  if (const auto best = BestTrial(results, metric)) json["best"] = results[*best].trial.name;
  return json;
}

}  // namespace medley::cli
