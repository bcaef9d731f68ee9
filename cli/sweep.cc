#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.h"
#include "cli/run/sweep_command.h"

namespace medley::cli {

void AddSweep(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand(
      "sweep", "Train a job of this machine with every combination of values, and compare the models");
  auto options = std::make_shared<SweepOptions>();
  command->add_option("FILE", options->file, "file with ResourcePools and one TrainingJob")->required();
  command
      ->add_option(
          "--set", options->set,
          "a field of the job and its values, such as training.optimizer.learningRate=0.1,0.03; may be repeated")
      ->required()
      ->allow_extra_args(false);
  command->add_option(
      "--metric", options->metric,
      "metric of the test data by which trials are compared; default: that of earlyStopping, or of the task");
  command->add_option("--at-once", options->at_once, "trials at the same time; default: as many as fit this machine")
      ->check(CLI::Range(1, 64));
  command->add_option("--export", options->model, "folder for the best model; default: JOB-model");
  command->add_option("--folder", options->folder, "folder for logs and pods' folders; default: a temporary one");
  command->add_option(
      "--programs", options->programs,
      "folder of medley-operator, medley-scheduler and medley-worker; default: the folder of this program");
  command
      ->add_option_function<std::string>(
          "-o,--output", [options](const std::string& format) { options->json = format == "json"; },
          "table (default) or json")
      ->check(CLI::IsMember({"table", "json"}));
  command->callback([options, &exit_status] { exit_status = Sweep(*options); });
}

}  // namespace medley::cli
