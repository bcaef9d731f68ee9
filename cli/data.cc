// medley data: looks at data before a job does.
#include <CLI/CLI.hpp>

#include <cstdio>
#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/data/guess.h"
#include "cli/data/head_view.h"
#include "cli/data/sample.h"
#include "cli/output_file.h"
#include "common/base/status.h"

namespace medley::cli {
namespace {

absl::Status PrintHead(const std::string& path, int rows, bool json) {
  MEDLEY_ASSIGN_OR_RETURN(const Sample sample, ReadSample(path));
  const TableGuess table = GuessTable(sample);
  const auto shown = static_cast<size_t>(rows);
  std::fputs((json ? HeadJson(sample, table, shown) : HeadText(sample, table, shown)).c_str(), stdout);
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
  const auto output = std::make_shared<std::string>("table");
  head->add_option("-o,--output", *output, "table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
  head->callback([path, rows, output, &exit_status] {
    const bool json = *output == "json";
    const absl::Status status = PrintHead(*path, *rows, json);
    if (!status.ok() && json) PrintJsonError(base::Message(status));
    if (!status.ok()) std::fprintf(stderr, "medley: %s\n", base::Message(status).c_str());
    exit_status = status.ok() ? 0 : 1;
  });
}

}  // namespace medley::cli
