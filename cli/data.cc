// medley data: looks at data before a job does, and generates some.
#include <CLI/CLI.hpp>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/data/generate.h"
#include "cli/data/guess.h"
#include "cli/data/head_view.h"
#include "cli/data/sample.h"
#include "cli/local_copies.h"
#include "cli/output_file.h"
#include "common/base/status.h"
#include "common/model/data_format.h"

namespace medley::cli {
namespace {

absl::Status PrintHead(const std::string& path, int rows, bool json) {
  MEDLEY_ASSIGN_OR_RETURN(const Sample sample, ReadSample(path));
  const TableGuess table = GuessTable(sample);
  const auto shown = static_cast<size_t>(rows);
  std::fputs((json ? HeadJson(sample, table, shown) : HeadText(sample, table, shown)).c_str(), stdout);
  return absl::OkStatus();
}

struct GenerateOptions {
  std::string file;
  int64_t rows = 100'000;
  uint64_t seed = 1;
  std::string format;
};

// The format that the user names, or that the ending of the file's name is.
absl::StatusOr<const model::DataFormat*> FormatToWrite(const GenerateOptions& options) {
  const std::string ending = std::filesystem::path(options.file).extension().string();
  const std::string name = !options.format.empty() ? options.format : ending.empty() ? "csv" : ending.substr(1);
  for (const model::DataFormat& format : model::DataFormats()) {
    if (name == format.name && model::DataFormatDelimitedBy(format.delimiter) == &format) return &format;
  }
  return base::InvalidArgument("writing {}: the format '{}' is not csv, tsv or libsvm; name one with --format",
                               options.file, name);
}

absl::Status WriteRows(const GenerateOptions& options, std::FILE* file) {
  constexpr size_t kAtOnce = size_t{1} << 20;
  MEDLEY_ASSIGN_OR_RETURN(const model::DataFormat* const format, FormatToWrite(options));
  CriteoRows rows(options.seed, format->delimiter);
  std::string text;
  rows.AppendHeader(text);
  for (int64_t row = 0; row < options.rows; ++row) {
    rows.AppendRow(text);
    if (text.size() < kAtOnce && row + 1 < options.rows) continue;
    if (std::fwrite(text.data(), 1, text.size(), file) != text.size()) {
      return base::ErrnoStatus(errno, "writing " + options.file);
    }
    text.clear();
  }
  if (std::fflush(file) != 0) return base::ErrnoStatus(errno, "writing " + options.file);
  return absl::OkStatus();
}

// Beside the file first, so that a file with this name is whole.
absl::Status Generate(const GenerateOptions& options) {
  if (options.file == "-") return WriteRows(options, stdout);
  MEDLEY_RETURN_IF_ERROR(FormatToWrite(options).status());
  const std::string part = options.file + ".part";
  std::FILE* const file = std::fopen(part.c_str(), "wb");
  if (file == nullptr) return base::ErrnoStatus(errno, "opening " + part);
  absl::Status status = WriteRows(options, file);
  if (std::fclose(file) != 0 && status.ok()) status = base::ErrnoStatus(errno, "writing " + part);
  std::error_code error;
  if (status.ok()) {
    std::filesystem::rename(part, options.file, error);
    if (error) status = base::ErrnoStatus(error.value(), "renaming " + part);
  }
  if (!status.ok()) std::filesystem::remove(part, error);
  return status;
}

void AddGenerate(CLI::App& data, int& exit_status) {
  CLI::App* command = data.add_subcommand("generate", "Write a table like the Criteo data set, to try things with");
  const auto options = std::make_shared<GenerateOptions>();
  command->add_option("FILE", options->file, "file to write; -: standard output")->required();
  command->add_option("--rows", options->rows, "number of rows")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40))
      ->capture_default_str();
  command->add_option("--seed", options->seed, "equal seeds give equal files")->capture_default_str();
  command->add_option("--format", options->format, "csv, tsv or libsvm; default: as the name of the file ends");
  command->callback([options, &exit_status] {
    const absl::Status status = Generate(*options);
    if (!status.ok()) std::fprintf(stderr, "medley: %s\n", base::Message(status).c_str());
    exit_status = status.ok() ? 0 : 1;
  });
}

}  // namespace

void AddData(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand("data", "Look at data before a job reads them, and generate some");
  command->require_subcommand(1);
  CLI::App* head = command->add_subcommand("head", "Show the columns of a file, their types, and the first rows");
  const auto path = std::make_shared<std::string>();
  const auto rows = std::make_shared<int>(3);
  head->add_option("DATA", *path, "CSV, TSV, libsvm, Parquet or Arrow file")->required();
  AddGenerate(*command, exit_status);
  head->add_option("-n,--rows", *rows, "number of rows")->check(CLI::Range(0, 1000))->capture_default_str();
  const auto output = std::make_shared<std::string>("table");
  head->add_option("-o,--output", *output, "table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
  head->callback([path, rows, output, &exit_status] {
    const bool json = *output == "json";
    LocalCopies copies;
    const absl::StatusOr<std::string> file = copies.Of(*path);
    const absl::Status status = file.ok() ? PrintHead(*file, *rows, json) : file.status();
    if (!status.ok() && json) PrintJsonError(base::Message(status));
    if (!status.ok()) std::fprintf(stderr, "medley: %s\n", base::Message(status).c_str());
    exit_status = status.ok() ? 0 : 1;
  });
}

}  // namespace medley::cli
