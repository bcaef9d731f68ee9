// How fast the samples of a table of Criteo's shape are read, by one thread: MB of the text a second of processor time.
//
//   data_bench --text-bytes BYTES [--rounds 5] FORMAT=FILE...
//
// FILE has the columns of `medley data generate`, as a table of CSV of BYTES bytes has them. "parsed": to rows, which
// training in a file of rows or in memory begins with; "loaded": to the data set that batches are gathered from, with
// the transform fitted and the digest. Each round reads each file once, in turn. Prints the medians and the slowest and
// fastest.
#include <fmt/format.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/model/data_format.h"
#include "worker/data/dataset.h"
#include "worker/data/source.h"
#include "worker/data/table.h"

namespace medley::worker {
namespace {

constexpr int64_t kEmbeddingRows = 1'000'000;
constexpr int kNumbers = 13, kCategories = 26;

struct BenchFile {
  model::DataSpec spec;
  std::vector<double> parsed, loaded;  // MB a second, by round
};

double ProcessorSeconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

absl::StatusOr<BenchFile> FileOfArgument(const std::string& argument) {
  const size_t equals = argument.find('=');
  const model::DataFormat* const format = model::DataFormatNamed(argument.substr(0, equals));
  if (equals == std::string::npos || format == nullptr) {
    return base::InvalidArgument("'{}' is not FORMAT=FILE", argument);
  }
  BenchFile file;
  const std::filesystem::path path = std::filesystem::absolute(argument.substr(equals + 1));
  file.spec.train = {.uri = "file://" + path.string(), .format = format->name};
  model::SchemaSpec& schema = file.spec.schema;
  schema.header = format->header != model::HeaderRule::kNever;
  schema.label_column = 0;
  for (int i = 1; i <= kNumbers; ++i) schema.numeric.push_back(i);
  for (int i = 1; i <= kCategories; ++i) schema.categorical.push_back(kNumbers + i);
  return file;
}

absl::Status Measure(double text_bytes, BenchFile& file) {
  MEDLEY_ASSIGN_OR_RETURN(const SourceFile source, FileOf(file.spec.train, ""));
  double began = ProcessorSeconds();
  int64_t rows = 0;
  {
    MEDLEY_ASSIGN_OR_RETURN(const ParsedTable table,
                            ParseTable(source, file.spec.schema, {.embedding_rows = kEmbeddingRows}));
    MEDLEY_RETURN_IF_ERROR(table.status);
    rows = table.rows;
    file.parsed.push_back(text_bytes / 1e6 / (ProcessorSeconds() - began));
  }
  began = ProcessorSeconds();
  MEDLEY_ASSIGN_OR_RETURN(const auto data,
                          Dataset::Load(file.spec.train, file.spec, nullptr, {.embedding_rows = kEmbeddingRows}));
  if (data->rows() != rows) return base::Internal("{}: {} and {} rows", file.spec.train.uri, rows, data->rows());
  file.loaded.push_back(text_bytes / 1e6 / (ProcessorSeconds() - began));
  return absl::OkStatus();
}

std::string Summary(std::vector<double> values) {
  std::ranges::sort(values);
  return fmt::format("{:6.0f} ({:.0f} to {:.0f})", values[values.size() / 2], values.front(), values.back());
}

absl::Status Run(const std::vector<std::string>& arguments, double text_bytes, int rounds) {
  std::vector<BenchFile> files;
  for (const std::string& argument : arguments) {
    MEDLEY_ASSIGN_OR_RETURN(files.emplace_back(), FileOfArgument(argument));
  }
  for (int round = 0; round < rounds; ++round) {
    for (BenchFile& file : files) MEDLEY_RETURN_IF_ERROR(Measure(text_bytes, file));
  }
  fmt::print("{:<24}{:>26}{:>26}\n", "MB/s of the text", "parsed", "loaded");
  for (const BenchFile& file : files) {
    fmt::print("{:<24}{:>26}{:>26}\n", std::filesystem::path(file.spec.train.uri).filename().string(),
               Summary(file.parsed), Summary(file.loaded));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace medley::worker

int main(int argc, char** argv) {
  CLI::App app("Reads tables of Criteo's shape");
  std::vector<std::string> files;
  double text_bytes = 0;
  int rounds = 5;
  app.add_option("FILES", files, "FORMAT=FILE")->required();
  app.add_option("--text-bytes", text_bytes)->required()->check(CLI::PositiveNumber);
  app.add_option("--rounds", rounds)->check(CLI::Range(1, 1000));
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = medley::worker::Run(files, text_bytes, rounds);
  if (!status.ok()) std::fprintf(stderr, "data_bench: %s\n", medley::base::Message(status).c_str());
  return status.ok() ? 0 : 1;
}
