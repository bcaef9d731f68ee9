// medley completion bash: a completion script made from the commands as they are registered.
#include <CLI/CLI.hpp>

#include <cstdio>
#include <string>

#include "cli/commands.h"

namespace medley::cli {
namespace {

std::string Options(const CLI::App& command) {
  std::string words;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) words += "--" + name + " ";
  }
  return words;
}

std::string BashScript(const CLI::App& app) {
  std::string names, cases;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names += command->get_name() + " ";
    cases += "    " + command->get_name() + ") words=\"" + Options(*command) + "\" ;;\n";
  }
  return "# bash completion for medley; load it with: source <(medley completion bash)\n"
         "_medley() {\n"
         "  local current=\"${COMP_WORDS[COMP_CWORD]}\" words=\"\"\n"
         "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
         "    COMPREPLY=($(compgen -W \"" + names + "\" -- \"$current\"))\n"
         "    return\n"
         "  fi\n"
         "  case \"${COMP_WORDS[1]}\" in\n" + cases +
         "  esac\n"
         "  case \"$current\" in\n"
         "    -*) COMPREPLY=($(compgen -W \"$words\" -- \"$current\")) ;;\n"
         "    *) COMPREPLY=($(compgen -f -- \"$current\")) ;;\n"
         "  esac\n"
         "}\n"
         "complete -o filenames -F _medley medley\n";
}

}  // namespace

void AddCompletion(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand("completion", "Print a shell completion script");
  command->require_subcommand(1);
  command->add_subcommand("bash", "for bash: source <(medley completion bash)")->callback([&app, &exit_status] {
    std::fputs(BashScript(app).c_str(), stdout);
    exit_status = 0;
  });
}

}  // namespace medley::cli
