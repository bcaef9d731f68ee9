#include <CLI/CLI.hpp>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/array_data.h"
#include "cli/commands.h"
#include "cli/model_data.h"
#include "common/base/status.h"
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
                               {"logLoss", "logLoss", "log loss"},
                               {"accuracy", "accuracy", "accuracy"},
                               {"mse", "mse", "MSE"},
                               {"mae", "mae", "MAE"},
                               {"r2", "r2", "R2"}};

void PrintJson(const worker::Quality& quality, bool binary) {
  nlohmann::ordered_json json = {{"rows", quality.rows}};
  if (binary) json["positives"] = quality.positives;
  for (const Metric& metric : kMetrics) {
    const auto found = quality.metrics.find(metric.key);
    if (found != quality.metrics.end()) json[metric.name] = found->second;
  }
  std::printf("%s\n", json.dump(2).c_str());
}

void PrintText(const worker::Quality& quality, bool binary) {
  std::printf("rows      %lld", static_cast<long long>(quality.rows));
  if (binary) std::printf(", %lld of them with label 1", static_cast<long long>(quality.positives));
  std::printf("\n");
  if (binary && !quality.metrics.contains("auc")) std::printf("AUC       undefined: all rows are of one class\n");
  for (const Metric& metric : kMetrics) {
    const auto found = quality.metrics.find(metric.key);
    if (found == quality.metrics.end()) continue;
    const bool any_size = std::string_view(metric.key).starts_with("m");  // in the unit of the label, or its square
    std::printf(any_size ? "%-9s %.6g\n" : "%-9s %.4f\n", metric.title, found->second);
  }
}

absl::Status Run(const EvaluateOptions& options) {
  MEDLEY_ASSIGN_OR_RETURN(const worker::LoadedModel model, worker::ReadExport(options.model));
  MEDLEY_ASSIGN_OR_RETURN(const worker::Quality quality,
                          EvaluateData(model, options.data, options.labels, options.max_bad_rows));
  SayBadRows(quality.bad_rows, "they are left out");
  const bool binary = model.model.schema.task == model::Task::kBinary;
  options.output == "json" ? PrintJson(quality, binary) : PrintText(quality, binary);
  return absl::OkStatus();
}

}  // namespace

void AddEvaluate(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand("evaluate", "Compute the quality of an exported model on labelled data");
  auto options = std::make_shared<EvaluateOptions>();
  command->add_option("EXPORT", options->model, "folder of an exported model")->required();
  command
      ->add_option(
          "DATA", options->data,
          "CSV file with the columns of the training data; -: standard input; of a model with arrays its file, "
          "or NAME=FILE for each input")
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
