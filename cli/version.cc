#include <CLI/CLI.hpp>

#include <cstdio>

#include "cli/commands.h"

namespace medley::cli {

void AddVersion(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand("version", "Print the version");
  command->callback([&exit_status] {
    std::printf("medley %s\n", MEDLEY_VERSION);
    exit_status = 0;
  });
}

}  // namespace medley::cli
