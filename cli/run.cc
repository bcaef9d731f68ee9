#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.h"
#include "cli/run/run_command.h"

namespace medley::cli {

void AddRun(CLI::App& app, int& exit_status) {
  CLI::App* command =
      app.add_subcommand("run", "Run a TrainingJob on this machine: API server, operator, scheduler, workers");
  auto options = std::make_shared<RunOptions>();
  command->add_option("FILE", options->file, "ResourcePools and one TrainingJob")->required();
  command->add_flag("--keep", options->keep, "leave the cluster up afterwards, for kubectl");
  command->add_flag("--plain", options->plain, "lines instead of a live view");
  command->add_option("--folder", options->folder,
                      "where kubeconfig, logs and pods' folders go; default: a temporary one");
  command->add_option("--port", options->port, "of the API server; default: a free one");
  command->add_option("--timeout", options->timeout_seconds, "seconds after which to give up")->capture_default_str();
  command->add_option("--programs", options->programs, "folder of the other programs; default: beside this one");
  command->callback([options, &exit_status] { exit_status = Run(*options); });
}

}  // namespace medley::cli
