// medley init DATA.csv: looks at the data and writes a job file that `medley run` runs.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/data/job_text.h"
#include "cli/data/label_guess.h"
#include "cli/data/sample.h"
#include "cli/format.h"
#include "cli/local_copies.h"
#include "cli/output_file.h"
#include "common/base/status.h"
#include "common/model/data_format.h"
#include "common/object_store/location.h"
#include "localcluster/node/machine.h"
#include "worker/data/number.h"
#include "worker/data/record.h"

namespace medley::cli {
namespace {

struct InitOptions {
  std::string data;
  std::string test;
  std::string validation;  // a file, or a fraction
  std::string label;
  std::string task;
  std::string categorical;  // lists with commas
  std::string numeric;
  std::string weight;
  std::string output;
};

// The sample of a file, or of the copy of an object, by the name that the user gave it.
absl::StatusOr<Sample> SampleOf(const std::string& path, LocalCopies& copies) {
  MEDLEY_ASSIGN_OR_RETURN(const std::string copy, copies.Of(path));
  MEDLEY_ASSIGN_OR_RETURN(Sample sample, ReadSample(copy));
  sample.path = path;
  return sample;
}

// A folder as the job file in `of` spells it: "./x" where it can, else the whole path.
std::filesystem::path Spelled(const std::filesystem::path& folder, const std::filesystem::path& of) {
  const std::filesystem::path relative = folder.lexically_relative(of);
  if (relative.empty() || *relative.begin() == "..") return folder;
  return relative == "." ? "./" : "./" / relative;
}

// The deepest folder that holds both.
std::filesystem::path Common(const std::filesystem::path& a, const std::filesystem::path& b) {
  std::filesystem::path common;
  for (auto i = a.begin(), j = b.begin(); i != a.end() && j != b.end() && *i == *j; ++i, ++j) common /= *i;
  return common;
}

// Also of a pattern of file names.
absl::StatusOr<std::filesystem::path> Absolute(const std::string& path) {
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::absolute(path, error);
  const std::filesystem::path folder = std::filesystem::canonical(whole.parent_path(), error);
  if (error) return base::ErrnoStatus(error.value(), "opening " + path);
  return folder / whole.filename();
}

absl::Status CheckDelimiter(const Sample& sample) {
  if (FormatOf(sample) != nullptr) return absl::OkStatus();
  return base::InvalidArgument(
      "{}: the values are separated by '{}'; Medley reads commas and tabs. Convert the file, for example with Python: "
      "csv.writer(out).writerows(csv.reader(file, delimiter='{}'))",
      sample.path, sample.delimiter, sample.delimiter);
}

// The format of test data, which must have the columns that the job reads, and those that it counts in the same places.
absl::StatusOr<std::string> CheckTest(const std::string& path, const Sample& train_sample, const TableGuess& train,
                                      LocalCopies& copies) {
  MEDLEY_ASSIGN_OR_RETURN(const Sample sample, SampleOf(path, copies));
  const bool columns = sample.format != nullptr || train_sample.format != nullptr;
  if (!columns && sample.delimiter != train_sample.delimiter && sample.columns > 1) {
    return base::InvalidArgument("{}: its values are separated by another character than those of {}", path,
                                 train_sample.path);
  }
  MEDLEY_RETURN_IF_ERROR(CheckDelimiter(sample));
  const TableGuess test = GuessTable(sample);
  if (test.header && !train.header && sample.rows.size() > 1) {
    return base::InvalidArgument("{}: the first row is a header, but {} has none: give both one", path,
                                 train_sample.path);
  }
  if (!train.header) {
    // A line of libsvm has any number of features.
    const bool any = sample.delimiter == worker::kLibsvmDelimiter;
    if (any || sample.columns == train_sample.columns) return std::string(FormatOf(sample)->name);
    return base::InvalidArgument("{}: has {} columns, {} has {}", path, sample.columns, train_sample.path,
                                 train_sample.columns);
  }
  for (const ColumnGuess& column : train.columns) {
    const Row& header = sample.rows.front();
    const bool at_number =
        static_cast<size_t>(column.number) < header.size() && header[static_cast<size_t>(column.number)] == column.name;
    const bool anywhere = std::find(header.begin(), header.end(), column.name) != header.end();
    if (column.named ? anywhere : at_number) continue;
    return base::InvalidArgument("{}: the header has no column {}, which {} has", path, ColumnText(column),
                                 train_sample.path);
  }
  return std::string(FormatOf(sample)->name);
}

// Writes the validation data that the user asks for into `input`; by default a part of the training data.
absl::Status AddValidation(const InitOptions& options, const Sample& sample, const TableGuess& table,
                           LocalCopies& copies, std::string& file, JobInput& input) {
  const std::string& wanted = options.validation;
  if (wanted.empty()) {
    input.validation_fraction = ValidationFraction(sample.estimated_rows);
    return absl::OkStatus();
  }
  const worker::Value value = worker::ValueReader().Read(wanted);
  if (value.kind != worker::ValueKind::kNumber) {
    MEDLEY_ASSIGN_OR_RETURN(input.validation_format, CheckTest(wanted, sample, table, copies));
    file = wanted;
    return absl::OkStatus();
  }
  if (value.number >= 0 && value.number < 1) {
    input.validation_fraction = value.number;
    return absl::OkStatus();
  }
  return base::InvalidArgument("--validation: {} is not a part of the rows between 0 and 1, as 0.1, or a file", wanted);
}

// A header with another number of fields than the rows would name the wrong columns.
absl::Status CheckHeader(const Sample& sample) {
  if (sample.first_row.empty() || sample.first_row.size() == sample.columns) return absl::OkStatus();
  const bool names = std::ranges::none_of(sample.first_row, [](const std::string& field) {
    return worker::ValueReader().Read(field).kind == worker::ValueKind::kNumber;
  });
  const std::string& first = sample.first_row.front();
  const bool excel = first.starts_with("sep=");
  if (excel || first.starts_with('#')) {
    return base::InvalidArgument("{}:1: the first line is {}, and not the header: remove it", sample.path,
                                 excel ? "a note for Excel ('sep=')" : "a comment ('#')");
  }
  if (!names) return absl::OkStatus();
  const bool ends = std::ranges::all_of(sample.rows, [&](const Row& row) { return row.back().empty(); });
  if (sample.first_row.size() + 1 == sample.columns && ends) {
    return base::InvalidArgument(
        "{}:1: each row ends with a separator, but the first one does not: end it with one too, or remove those of the "
        "rows",
        sample.path);
  }
  return base::InvalidArgument(
      "{}:1: the first row has {} fields, but most rows have {}: a header needs a name for each column", sample.path,
      sample.first_row.size(), sample.columns);
}

// The label that the user names. libsvm files say which column it is.
std::string LabelOf(const InitOptions& options, const Sample& sample) {
  return options.label.empty() && sample.delimiter == worker::kLibsvmDelimiter ? "0" : options.label;
}

absl::StatusOr<std::map<size_t, ColumnType>> WantedTypes(const InitOptions& options, const TableGuess& table) {
  std::map<size_t, ColumnType> wanted;
  const std::pair<const std::string*, ColumnType> lists[] = {{&options.categorical, ColumnType::kCategorical},
                                                             {&options.numeric, ColumnType::kNumeric}};
  for (const auto& [list, type] : lists) {
    if (list->empty()) continue;
    MEDLEY_ASSIGN_OR_RETURN(const std::vector<size_t> columns, FindListed(options.data, table, *list));
    for (const size_t column : columns) {
      if (wanted.emplace(column, type).second) continue;
      return base::InvalidArgument("{}: column {} cannot be both categorical and numeric", options.data,
                                   ColumnText(table.columns[column]));
    }
  }
  return wanted;
}

std::string LabelColumns(const TableGuess& table, const LabelGuess& label) {
  constexpr size_t kMostNamed = 6;
  if (label.columns.empty()) return ColumnText(table.columns[label.column]);
  std::string text;
  for (size_t i = 0; i < std::min(label.columns.size(), kMostNamed); ++i) {
    text += (i == 0 ? "" : ", ") + ColumnText(table.columns[label.columns[i]]);
  }
  return label.columns.size() > kMostNamed ? text + ", ..." : text;
}

// What was decided against some values, and what may be wrong.
std::vector<std::string> Notes(const Sample& sample, const TableGuess& table, const LabelGuess& label) {
  std::vector<std::string> notes = label.because;
  for (size_t c = 0; c < table.columns.size(); ++c) {
    if (label.Is(c)) continue;
    notes.insert(notes.end(), table.columns[c].because.begin(), table.columns[c].because.end());
  }
  for (std::string& leak : FindLeaks(table, label)) notes.push_back(std::move(leak));
  for (std::string& weight : FindWeights(table, label)) notes.push_back(std::move(weight));
  if (label.missing > 0) {
    notes.push_back(fmt::format("{} without a label {} left out (maxBadRows)", Counted(label.missing, "row"),
                                label.missing == 1 ? "is" : "are"));
  }
  if (sample.bad_rows > 0) {
    notes.push_back(fmt::format("{} cannot be read, and {} left out (maxBadRows); the first: {}",
                                Counted(sample.bad_rows, "row"), sample.bad_rows == 1 ? "is" : "are",
                                sample.first_bad));
  }
  if (sample.not_utf8_line > 0) {
    notes.push_back(fmt::format(
        "line {} is not text in UTF-8, and may be Latin-1: its values are taken as bytes, so all files must have the "
        "same encoding",
        sample.not_utf8_line));
  }
  return notes;
}

void Say(const Sample& sample, const TableGuess& table, const LabelGuess& label, const std::string& output) {
  std::map<ColumnType, size_t> types;
  for (size_t c = 0; c < table.columns.size(); ++c) {
    if (!label.Is(c)) ++types[table.columns[c].type];
  }
  const size_t left_out = types[ColumnType::kIdentifier] + types[ColumnType::kConstant];
  std::string text =
      fmt::format("{}: {}, {}; {}\n", sample.path, Counted(std::ssize(table.columns), "column"),
                  sample.whole ? Counted(std::ssize(table.rows), "row")
                               : fmt::format("about {} rows", Thousands(static_cast<double>(sample.estimated_rows))),
                  table.header ? "the first row is a header" : "no header");
  text += fmt::format("label: column{} {}, because {}", label.columns.size() > 1 ? "s" : "", LabelColumns(table, label),
                      label.why);
  if (!label.positive.empty()) text += fmt::format("; \"{}\" counts as 1, \"{}\" as 0", label.positive, label.negative);
  if (label.weight) text += fmt::format("\nweights of rows: column {}", ColumnText(table.columns[*label.weight]));
  text += fmt::format(
      "\nfeatures: {} numeric, {} categorical{}; {} left out\n", types[ColumnType::kNumeric],
      types[ColumnType::kCategorical],
      types[ColumnType::kDate] == 0 ? "" : ", " + Counted(static_cast<int64_t>(types[ColumnType::kDate]), "date"),
      Counted(static_cast<int64_t>(left_out), "column"));
  for (const std::string& note : Notes(sample, table, label)) text += "note: " + note + "\n";
  if (!output.empty()) text += fmt::format("wrote {}; next: medley run {}\n", output, output);
  std::fputs(text.c_str(), stderr);
}

// Writes where the files are into `input`: below one folder, which a volume shows the pods, or all in object stores.
absl::Status AddPlaces(const std::string& data, const std::string& test_file, const std::string& validation_file,
                       const std::filesystem::path& base_folder, JobInput& input) {
  const auto remote = [](const std::string& file) { return object_store::IsRemote(file); };
  for (const std::string* file : {&test_file, &validation_file}) {
    if (file->empty() || remote(*file) == remote(data)) continue;
    return base::InvalidArgument("{} and {}: put both into an object store, or neither", data, *file);
  }
  if (remote(data)) {
    input.train = data;
    if (!test_file.empty()) input.test = test_file;
    if (!validation_file.empty()) input.validation = validation_file;
    return absl::OkStatus();
  }
  MEDLEY_ASSIGN_OR_RETURN(const std::filesystem::path train, Absolute(data));
  std::filesystem::path test, validation;
  if (!test_file.empty()) {
    MEDLEY_ASSIGN_OR_RETURN(test, Absolute(test_file));
  }
  if (!validation_file.empty()) {
    MEDLEY_ASSIGN_OR_RETURN(validation, Absolute(validation_file));
  }
  std::filesystem::path folder = train.parent_path();
  for (const std::filesystem::path& file : {test, validation}) {
    if (!file.empty()) folder = Common(folder, file.parent_path());
  }
  if (!test.empty()) input.test = test.lexically_relative(folder).string();
  if (!validation.empty()) input.validation = validation.lexically_relative(folder).string();
  input.train = train.lexically_relative(folder).string();
  input.folder = Spelled(folder, base_folder);
  return absl::OkStatus();
}

absl::Status Run(const InitOptions& options) {
  LocalCopies copies;
  MEDLEY_ASSIGN_OR_RETURN(const Sample sample, SampleOf(options.data, copies));
  MEDLEY_RETURN_IF_ERROR(CheckDelimiter(sample));
  MEDLEY_RETURN_IF_ERROR(CheckHeader(sample));
  TableGuess table = GuessTable(sample);
  MEDLEY_ASSIGN_OR_RETURN(const auto wanted, WantedTypes(options, table));
  if (!wanted.empty()) table = GuessTable(sample, wanted);
  if (table.rows.empty()) return base::InvalidArgument("{}: the file has no rows below its header", options.data);
  MEDLEY_ASSIGN_OR_RETURN(LabelGuess label,
                          GuessLabel(options.data, table, LabelOf(options, sample), model::TaskNamed(options.task)));
  if (!options.weight.empty()) MEDLEY_RETURN_IF_ERROR(UseWeight(options.data, table, options.weight, label));
  MEDLEY_RETURN_IF_ERROR(CheckFeatures(options.data, table, label));
  JobInput input;
  std::string validation;  // a file
  MEDLEY_RETURN_IF_ERROR(AddValidation(options, sample, table, copies, validation, input));
  if (!options.test.empty()) {
    MEDLEY_ASSIGN_OR_RETURN(input.test_format, CheckTest(options.test, sample, table, copies));
  }
  const bool standard = options.output == "-";
  input.name = JobNameOf(options.output.empty() || standard ? options.data : options.output);
  const std::string output = options.output.empty() ? input.name + ".yaml" : options.output;
  input.file = standard ? "FILE" : output;
  std::error_code error;
  const auto base = standard ? std::filesystem::current_path() : std::filesystem::absolute(output, error).parent_path();
  const auto base_folder = std::filesystem::canonical(base, error);
  if (error) return base::ErrnoStatus(error.value(), "opening the folder " + base.string());
  MEDLEY_RETURN_IF_ERROR(AddPlaces(options.data, options.test, validation, base_folder, input));
  input.rows = sample.estimated_rows;
  input.sample_rows = std::ssize(table.rows);
  input.bad_rows = sample.bad_rows + label.missing + label.unweighted;
  for (size_t c = 0; c < table.columns.size(); ++c) {
    if (!label.Is(c)) input.bad_rows += table.columns[c].unreadable;
  }
  input.format = FormatOf(sample)->name;
  const localcluster::Machine machine = localcluster::ThisMachine();
  input.cpus = machine.cpus;
  input.memory_bytes = machine.memory_bytes;
  const std::string text = JobText(input, table, label);
  if (standard) {
    std::fputs(text.c_str(), stdout);
  } else {
    if (std::filesystem::exists(output, error) && !IsStream(output)) {
      return base::AlreadyExists("{} exists: remove it, or name another file with -o", output);
    }
    MEDLEY_RETURN_IF_ERROR(WriteOutput(output, text));
  }
  Say(sample, table, label, standard ? "" : output);
  return absl::OkStatus();
}

}  // namespace

void AddInit(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand("init", "Look at a table and write a job file that trains on it");
  auto options = std::make_shared<InitOptions>();
  command->add_option("DATA", options->data, "CSV, TSV, libsvm, Parquet or Arrow file with the rows for training")
      ->required();
  command->add_option("--label", options->label,
                      "name or number of the column to predict, or several with commas; default: guessed");
  command->add_option("--task", options->task, "binary, regression, multiClass or multiLabel; default: guessed")
      ->check(CLI::IsMember({"binary", "regression", "multiClass", "multiLabel"}));
  command->add_option("--categorical", options->categorical,
                      "columns that hold text or names, with commas between them");
  command->add_option("--numeric", options->numeric, "columns that hold numbers; other values are taken as missing");
  command->add_option("--weight", options->weight,
                      "column of numbers from 0 on that say how much a row counts; default: all count alike");
  command->add_option("--test", options->test,
                      "file with rows on which the finished model is evaluated; default: none");
  command->add_option("--validation", options->validation,
                      "file with rows that choose the best model, or the part of DATA that does, as 0.1; 0: none; "
                      "default: a tenth");
  command->add_option("-o,--output", options->output, "job file; default: NAME.yaml; -: standard output");
  command->callback([options, &exit_status] {
    const absl::Status status = Run(*options);
    if (!status.ok()) std::fprintf(stderr, "medley: %s\n", base::Message(status).c_str());
    exit_status = status.ok() ? 0 : 1;
  });
}

}  // namespace medley::cli
