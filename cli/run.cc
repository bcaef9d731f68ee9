#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.h"
#include "cli/run/run_command.h"

namespace medley::cli {

void AddRun(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand(
      "run", "Run a TrainingJob on this machine with its own API server, operator, scheduler and workers");
  auto options = std::make_shared<RunOptions>();
  command->add_option("FILE", options->file, "file with ResourcePools and one TrainingJob")->required();
  command->add_option("--export", options->model, "folder for the finished model; default: JOB-model");
  command->add_flag("--keep", options->keep, "leave the local cluster running after the job, for kubectl");
  command
      ->add_option_function<std::string>(
          "-o,--output", [options](const std::string& form) { options->json = form == "json"; },
          "text or json, a JSON object for each line; errors for people stay on standard error")
      ->check(CLI::IsMember({"text", "json"}))
      ->default_str("text");
  command->add_flag("--plain", options->plain, "print lines instead of a live view");
  command->add_option("--folder", options->folder,
                      "folder for the state of the run, its checkpoints and logs; default: JOB-run beside the model, "
                      "removed once the run is over");
  command->add_flag("--resume", options->resume, "continue the run that was stopped, from its last checkpoint");
  command->add_flag("--measure", options->measure, "measure the model again, although an earlier run has");
  command->add_option("--port", options->port, "port of the API server; default: a free one");
  command->add_flag("--emulate-network", options->emulate_network,
                    "run the cluster in a network of its own, with the links of the pods' annotations; needs root");
  command
      ->add_option("--timeout", options->timeout_seconds,
                   "stop after so many seconds, with a checkpoint from which --resume continues; default: no limit")
      ->check(CLI::NonNegativeNumber);
  command->add_option(
      "--programs", options->programs,
      "folder of medley-operator, medley-scheduler and medley-worker; default: the folder of this program");
  command->callback([options, &exit_status] { exit_status = Run(*options); });
}

}  // namespace medley::cli
