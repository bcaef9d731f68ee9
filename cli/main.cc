// medley: the user's tool. One line a command.
#include <CLI/CLI.hpp>

#include "cli/commands.h"

int main(int argc, char** argv) {
  CLI::App app("Medley trains one model on the cheapest mix of unlike machines that is fast enough.", "medley");
  app.require_subcommand(1);
  int exit_status = 0;
  medley::cli::AddRun(app, exit_status);
  medley::cli::AddPlan(app, exit_status);
  medley::cli::AddExplain(app, exit_status);
  medley::cli::AddPrices(app, exit_status);
  medley::cli::AddProfile(app, exit_status);
  medley::cli::AddVersion(app, exit_status);
  medley::cli::AddCompletion(app, exit_status);
  CLI11_PARSE(app, argc, argv);
  return exit_status;
}
