// medley: the command-line tool for users. Under the name kubectl-medley it is the kubectl plugin `kubectl medley`.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/complete.h"
#include "cli/unknown_command.h"

int main(int argc, char** argv) {
  const std::string program = argc > 0 ? std::filesystem::path(argv[0]).filename().string() : "medley";
  const bool plugin = program.starts_with("kubectl-");
  CLI::App app("Medley trains a model on the cheapest mix of different machines that is fast enough.",
               plugin ? "kubectl medley" : "medley");
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("medley ") + MEDLEY_VERSION, "Print the version and exit");
  int exit_status = 0;
  medley::cli::AddInit(app, exit_status);
  medley::cli::AddData(app, exit_status);
  medley::cli::AddRun(app, exit_status);
  medley::cli::AddSweep(app, exit_status);
  medley::cli::AddTop(app, exit_status);
  medley::cli::AddDashboard(app, exit_status);
  medley::cli::AddExplain(app, exit_status);
  medley::cli::AddPlan(app, exit_status);
  medley::cli::AddSimulate(app, exit_status);
  medley::cli::AddModel(app, exit_status);
  medley::cli::AddProgram(app, exit_status);
  medley::cli::AddLogs(app, exit_status);
  medley::cli::AddDownload(app, exit_status);
  medley::cli::AddPredict(app, exit_status);
  medley::cli::AddEvaluate(app, exit_status);
  medley::cli::AddOnnx(app, exit_status);
  medley::cli::AddPrices(app, exit_status);
  medley::cli::AddProfile(app, exit_status);
  medley::cli::AddVersion(app, exit_status);
  medley::cli::AddCompletion(app, exit_status);
  // Completion scripts and kubectl make these calls. Their words can be incomplete, so they are not parsed.
  const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  if (program.starts_with("kubectl_complete-")) return medley::cli::PrintCompletions(app, words);
  if (!words.empty() && words[0] == "__complete") {
    return medley::cli::PrintCompletions(app, std::vector<std::string>(words.begin() + 1, words.end()));
  }
  if (const std::string unknown = medley::cli::UnknownCommand(app, words); !unknown.empty()) {
    std::fprintf(stderr, "medley: %s\n", unknown.c_str());
    return static_cast<int>(CLI::ExitCodes::ExtrasError);
  }
  CLI11_PARSE(app, argc, argv);
  return exit_status;
}
