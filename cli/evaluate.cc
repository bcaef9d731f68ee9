#include <CLI/CLI.hpp>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/commands.h"
#include "cli/model_data.h"
#include "common/base/status.h"
#include "worker/predict/predict.h"

namespace medley::cli {
namespace {

struct EvaluateOptions {
  std::filesystem::path model;
  std::string data;
  std::string output = "text";
};

absl::Status Run(const EvaluateOptions& options) {
  MEDLEY_ASSIGN_OR_RETURN(const worker::LoadedModel model, worker::ReadExport(options.model));
  MEDLEY_ASSIGN_OR_RETURN(DataFile data, DataFile::Open(options.data));
  MEDLEY_ASSIGN_OR_RETURN(const worker::Quality quality, worker::EvaluateQuality(model, data.name(), data.Reader()));
  const bool both = quality.positives > 0 && quality.positives < quality.rows;
  if (options.output == "json") {
    nlohmann::ordered_json json = {{"rows", quality.rows}, {"positives", quality.positives}};
    if (both) json["auc"] = quality.auc;
    json["logLoss"] = quality.log_loss;
    json["accuracy"] = quality.accuracy;
    std::printf("%s\n", json.dump(2).c_str());
    return absl::OkStatus();
  }
  std::printf("rows      %lld, %lld of them with label 1\n", static_cast<long long>(quality.rows),
              static_cast<long long>(quality.positives));
  if (both) {
    std::printf("AUC       %.4f\n", quality.auc);
  } else {
    std::printf("AUC       undefined: all rows are of one class\n");
  }
  std::printf("log loss  %.4f\naccuracy  %.4f\n", quality.log_loss, quality.accuracy);
  return absl::OkStatus();
}

}  // namespace

void AddEvaluate(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand("evaluate", "Compute the quality of an exported model on labelled data");
  auto options = std::make_shared<EvaluateOptions>();
  command->add_option("EXPORT", options->model, "folder of an exported model")->required();
  command->add_option("DATA", options->data, "CSV file with the columns of the training data; -: standard input")
      ->required();
  command->add_option("-o,--output", options->output, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command->callback([options, &exit_status] { exit_status = ExitStatusOf(Run(*options)); });
}

}  // namespace medley::cli
