#include <unistd.h>
#include <CLI/CLI.hpp>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/array_data.h"
#include "cli/commands.h"
#include "cli/local_copies.h"
#include "cli/model_data.h"
#include "cli/output_file.h"
#include "common/base/status.h"
#include "worker/predict/predict.h"

namespace medley::cli {
namespace {

struct PredictOptions {
  std::filesystem::path model;
  std::vector<std::string> data;
  std::filesystem::path output;  // empty: stdout
  bool all = false;
  std::optional<int64_t> max_bad_rows;
};

absl::Status WriteAll(std::FILE* file, std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), file) == text.size()) return absl::OkStatus();
  return base::ErrnoStatus(errno, "writing the predictions");
}

// For the rows of all files, one file after the other.
absl::StatusOr<int64_t> PredictAll(const worker::LoadedModel& model, const PredictOptions& options, std::FILE* output) {
  const auto write = [&](std::string_view text) { return WriteAll(output, text); };
  DataProgress progress(options.data.front());
  worker::RowOptions rows_as{
      .max_bad_rows = options.max_bad_rows, .progress = &progress.progress(), .all = options.all};
  if (isatty(fileno(output)) != 0) rows_as.progress = nullptr;  // the predictions say it
  if (!model.model.array_format.empty()) {
    MEDLEY_ASSIGN_OR_RETURN(const model::SourceSpec source, worker::ArraySourceOf(model.model, options.data, ""));
    return worker::PredictArrays(model, source, write, rows_as);
  }
  MEDLEY_ASSIGN_OR_RETURN(const std::vector<std::string> paths, FilesOf(options.data));
  ExpectFiles(paths, progress.progress());
  int64_t rows = 0;
  for (const std::string& path : paths) {
    MEDLEY_ASSIGN_OR_RETURN(DataFile file, DataFile::Open(path, model.model));
    worker::BadRows bad;
    const worker::RowSource source{file.name(), file.Reader(rows_as.progress)};
    MEDLEY_ASSIGN_OR_RETURN(const int64_t more, worker::Predict(model, source, write, rows_as, &bad));
    rows += more;
    SayBadRows(bad, "their lines are empty");
  }
  return rows;
}

// Into a file beside `output`, which is renamed at the end: an error leaves no half of the predictions.
absl::StatusOr<int64_t> PredictInto(const worker::LoadedModel& model, const PredictOptions& options) {
  const std::filesystem::path& output = options.output;
  // A device or a pipe is written in place.
  const bool stream = IsStream(output.string());
  std::filesystem::path temporary = output;
  if (!stream) temporary += ".tmp";
  const std::unique_ptr<std::FILE, CloseFile> file(std::fopen(temporary.c_str(), "wb"));
  if (file == nullptr) return base::ErrnoStatus(errno, "creating " + temporary.string());
  auto rows = PredictAll(model, options, file.get());
  if (rows.ok() && std::fflush(file.get()) != 0) rows = base::ErrnoStatus(errno, "writing " + temporary.string());
  std::error_code error;
  if (rows.ok() && !stream) std::filesystem::rename(temporary, output, error);
  if (error) rows = base::ErrnoStatus(error.value(), "renaming to " + output.string());
  if (!rows.ok() && !stream) std::filesystem::remove(temporary, error);
  return rows;
}

absl::Status Run(PredictOptions options) {
  LocalCopies copies;
  MEDLEY_ASSIGN_OR_RETURN(const std::string folder, copies.OfFolder(options.model));
  MEDLEY_ASSIGN_OR_RETURN(options.data, copies.Of(options.data));
  MEDLEY_ASSIGN_OR_RETURN(const worker::LoadedModel model, worker::ReadExport(folder));
  if (options.output.empty() || options.output == "-") {
    MEDLEY_RETURN_IF_ERROR(PredictAll(model, options, stdout).status());
    return std::fflush(stdout) == 0 ? absl::OkStatus() : base::ErrnoStatus(errno, "writing the predictions");
  }
  MEDLEY_ASSIGN_OR_RETURN(const int64_t rows, PredictInto(model, options));
  std::printf("%lld predictions: %s\n", static_cast<long long>(rows), options.output.c_str());
  return absl::OkStatus();
}

}  // namespace

void AddPredict(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand(
      "predict", "Print the prediction for each row of a CSV file: a probability, a number or a class");
  auto options = std::make_shared<PredictOptions>();
  command->add_option("EXPORT", options->model, "folder of an exported model")->required();
  command
      ->add_option("DATA", options->data,
                   "CSV file with the columns of the training data, plain or compressed, or another table; a quoted "
                   "pattern of files; -: "
                   "standard input; "
                   "of a model with arrays its file, or NAME=FILE for each input")
      ->required();
  command->add_option("-o,--output", options->output, "file for the predictions; default, and -: standard output");
  command->add_flag("--all", options->all, "of several classes, print the probabilities of all, separated by commas");
  command->add_option("--max-bad-rows", options->max_bad_rows,
                      "rows that may be unreadable, each with an empty line; default: maxBadRows of the job");
  command->callback([options, &exit_status] { exit_status = ExitStatusOf(Run(*options)); });
}

}  // namespace medley::cli
