#include <CLI/CLI.hpp>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/array_data.h"
#include "cli/commands.h"
#include "cli/local_copies.h"
#include "cli/model_data.h"
#include "cli/table.h"
#include "common/base/status.h"
#include "common/base/utf8.h"
#include "worker/predict/predict.h"

namespace medley::cli {
namespace {

struct EvaluateOptions {
  std::filesystem::path model;
  std::vector<std::string> data;
  std::string labels;
  std::string output = "text";
  std::optional<int64_t> max_bad_rows;
};

struct Metric {
  const char* key;    // of Quality::metrics
  const char* name;   // in JSON, as in manifests
  const char* title;  // in text
};
constexpr Metric kMetrics[] = {{"auc", "auc", "AUC"},
                               {"prAuc", "prAuc", "PR AUC"},
                               {"logLoss", "logLoss", "log loss"},
                               {"accuracy", "accuracy", "accuracy"},
                               {"top5Accuracy", "top5Accuracy", "top 5"},
                               {"balancedAccuracy", "balancedAccuracy", "balanced"},
                               {"f1", "f1", "best F1"},
                               {"f1Threshold", "f1Threshold", "  from"},
                               {"calibrationError", "calibrationError", "calib."},
                               {"mse", "mse", "MSE"},
                               {"rmse", "rmse", "RMSE"},
                               {"mae", "mae", "MAE"},
                               {"r2", "r2", "R2"}};

// The classes in the order of the confusion matrix.
std::vector<std::string> ClassNames(const worker::ExportedModel& model) {
  if (model.schema.task == model::Task::kMultiClass) return model.transform.label.classes;
  const std::string& positive = model.schema.label_positive;
  return {positive.empty() ? "0" : "other", positive.empty() ? "1" : positive};
}

// A row for each class of the label; larger matrices are in JSON only.
void PrintConfusion(const worker::Quality& quality, const std::vector<std::string>& names) {
  constexpr size_t kMostShown = 12;
  if (quality.confusion.empty() || names.size() > kMostShown) return;
  std::vector<std::string> header = {"label \\ predicted"};
  for (const std::string& name : names) header.push_back(base::Printable(name));
  Table table(header);
  for (size_t i = 0; i < names.size(); ++i) {
    std::vector<std::string> row = {base::Printable(names[i])};
    for (size_t j = 0; j < names.size(); ++j) row.push_back(std::to_string(quality.confusion[i * names.size() + j]));
    table.Add(std::move(row));
  }
  std::printf("\n%s", table.Text().c_str());
}

void PrintJson(const worker::Quality& quality, bool binary, const std::vector<std::string>& names) {
  nlohmann::ordered_json json = {{"rows", quality.rows}};
  if (binary) json["positives"] = quality.positives;
  if (quality.weighted) json["weighted"] = true;
  for (const Metric& metric : kMetrics) {
    const auto found = quality.metrics.find(metric.key);
    if (found != quality.metrics.end()) json[metric.name] = found->second;
  }
  const size_t classes = names.size();
  for (size_t i = 0; i < classes && !quality.confusion.empty(); ++i) {
    const auto row = quality.confusion.begin() + static_cast<std::ptrdiff_t>(i * classes);
    json["confusion"].push_back(
        {{"label", names[i]}, {"predicted", std::vector(row, row + static_cast<std::ptrdiff_t>(classes))}});
  }
  if (!quality.confusion.empty()) json["classes"] = names;
  std::printf("%s\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

void PrintText(const worker::Quality& quality, bool binary, const std::vector<std::string>& names) {
  std::printf("rows      %lld", static_cast<long long>(quality.rows));
  if (binary) std::printf(", %lld of them with label 1", static_cast<long long>(quality.positives));
  if (quality.weighted) std::printf("; the metrics count each with its weight");
  std::printf("\n");
  if (binary && !quality.metrics.contains("auc")) std::printf("AUC       undefined: all rows are of one class\n");
  for (const Metric& metric : kMetrics) {
    const auto found = quality.metrics.find(metric.key);
    if (found == quality.metrics.end()) continue;
    const std::string_view key = metric.key;
    const bool any_size = key == "mse" || key == "rmse" || key == "mae";  // in the unit of the label, or its square
    const char* const title = key == "f1" && !binary ? "macro F1" : metric.title;
    std::printf(any_size ? "%-9s %.6g\n" : "%-9s %.4f\n", title, found->second);
  }
  if (quality.poorly_calibrated) {
    std::printf(
        "probabilities differ from the rates of positives by %.2f on average. Weights of classes shift them, and so\n"
        "does too little training: use the order of the predictions rather than their size\n",
        quality.metrics.at("calibrationError"));
  }
  PrintConfusion(quality, names);
}

absl::Status Run(const EvaluateOptions& options) {
  LocalCopies copies;
  MEDLEY_ASSIGN_OR_RETURN(const std::string folder, copies.OfFolder(options.model));
  MEDLEY_ASSIGN_OR_RETURN(const std::vector<std::string> data, copies.Of(options.data));
  MEDLEY_ASSIGN_OR_RETURN(const std::string labels, copies.Of(options.labels));
  MEDLEY_ASSIGN_OR_RETURN(const worker::LoadedModel model, worker::ReadExport(folder));
  MEDLEY_ASSIGN_OR_RETURN(const worker::Quality quality,
                          EvaluateData(model, data, labels, {.max_bad_rows = options.max_bad_rows}));
  SayBadRows(quality.bad_rows, "they are left out");
  const bool binary = model.model.schema.task == model::Task::kBinary;
  const std::vector<std::string> names = ClassNames(model.model);
  options.output == "json" ? PrintJson(quality, binary, names) : PrintText(quality, binary, names);
  return absl::OkStatus();
}

}  // namespace

void AddEvaluate(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand("evaluate", "Compute the quality of an exported model on labelled data");
  auto options = std::make_shared<EvaluateOptions>();
  command->add_option("EXPORT", options->model, "folder of an exported model")->required();
  command
      ->add_option("DATA", options->data,
                   "CSV file with the columns of the training data, plain or compressed, or another table; a quoted "
                   "pattern of files; -: standard "
                   "input; of a model with arrays its file, or NAME=FILE for each input")
      ->required();
  command->add_option("--labels", options->labels, "file with the labels, of a model with arrays");
  command->add_option("-o,--output", options->output, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command->add_option("--max-bad-rows", options->max_bad_rows,
                      "rows that may be unreadable and are left out; default: maxBadRows of the job");
  command->callback([options, &exit_status] { exit_status = ExitStatusOf(Run(*options)); });
}

}  // namespace medley::cli
