#include "cli/unknown_command.h"

#include <CLI/CLI.hpp>

#include "common/base/closest.h"

namespace medley::cli {

std::string UnknownCommand(const CLI::App& app, const std::vector<std::string>& words) {
  if (words.empty() || words[0].starts_with("-")) return "";
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->check_name(words[0])) return "";
    names.push_back(command->get_name());
  }
  const std::string meant = base::DidYouMean(words[0], names);
  return "unknown command '" + words[0] + "'" + (meant.empty() ? "; medley --help lists all" : meant);
}

}  // namespace medley::cli
