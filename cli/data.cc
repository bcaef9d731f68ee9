// medley data: looks at data before a job does.
#include <CLI/CLI.hpp>

#include <cstdio>
#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/data/guess.h"
#include "cli/data/head_view.h"
#include "cli/data/sample.h"
#include "common/base/status.h"

namespace medley::cli {
namespace {

absl::Status PrintHead(const std::string& path, int rows) {
  MEDLEY_ASSIGN_OR_RETURN(const Sample sample, ReadSample(path));
  std::fputs(HeadText(sample, GuessTable(sample), static_cast<size_t>(rows)).c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace

void AddData(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand("data", "Look at data before a job reads them");
  command->require_subcommand(1);
  CLI::App* head = command->add_subcommand("head", "Show the columns of a file, their types, and the first rows");
  const auto path = std::make_shared<std::string>();
  const auto rows = std::make_shared<int>(3);
  head->add_option("DATA", *path, "CSV or TSV file")->required();
  head->add_option("-n,--rows", *rows, "number of rows")->check(CLI::Range(0, 1000))->capture_default_str();
  head->callback([path, rows, &exit_status] {
    const absl::Status status = PrintHead(*path, *rows);
    if (!status.ok()) std::fprintf(stderr, "medley: %s\n", base::Message(status).c_str());
    exit_status = status.ok() ? 0 : 1;
  });
}

}  // namespace medley::cli
