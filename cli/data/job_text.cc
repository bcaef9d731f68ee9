#include "cli/data/job_text.h"

#include <absl/strings/str_join.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/data/embedding_dim.h"
#include "cli/data/template_choice.h"
#include "cli/format.h"

namespace medley::cli {
namespace {

constexpr int kUnits = 3;                // of the pool: two trainers and a parameter server
constexpr double kCoordinatorCpu = 0.4;  // left for the coordinator and the rest of the cluster
constexpr size_t kLineWidth = 100;
constexpr size_t kMostMissing = 256;  // texts of schema.missing

// A scalar of YAML in double quotes, whose escapes are those of JSON.
std::string Quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string ColumnScalar(const ColumnGuess& column) {
  return column.named ? Quoted(column.name) : std::to_string(column.number);
}

// Text of the data in a comment of one line.
std::string Plain(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  return text.size() > 60 ? text.substr(0, 57) + "..." : text;
}

std::string OneLine(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  return text;
}

// A list over as many lines as it takes.
std::string ListOf(const std::string& key, const std::vector<std::string>& items) {
  std::string text;
  std::string line = "      " + key + ": [";
  for (size_t i = 0; i < items.size(); ++i) {
    const std::string item = items[i] + (i + 1 < items.size() ? "," : "]");
    if (line.size() + item.size() > kLineWidth) {
      text += line + "\n";
      line = "       ";
    }
    line += (line.back() == '[' ? "" : " ") + item;
  }
  return text + line + "\n";
}

// A name as its letters and the number that it ends in; no digits: the number is 0.
struct NumberedName {
  std::string prefix;
  std::string digits;
};

NumberedName Divide(const std::string& name) {
  size_t begin = name.size();
  while (begin > 0 && name.size() - begin < 9 && name[begin - 1] >= '0' && name[begin - 1] <= '9') --begin;
  return {name.substr(0, begin), name.substr(begin)};
}

// Whether the name of `b` follows that of `a`: pixel1 and pixel2, x09 and x10, but not x9 and x010.
bool NameFollows(const std::string& a, const std::string& b) {
  const NumberedName first = Divide(a), second = Divide(b);
  if (first.digits.empty() || second.digits.empty() || first.prefix != second.prefix) return false;
  const bool padded = first.digits.size() > 1 && first.digits[0] == '0';
  const bool second_padded = second.digits.size() > 1 && second.digits[0] == '0';
  if (second_padded && (!padded || first.digits.size() != second.digits.size())) return false;
  if (padded && first.digits.size() != second.digits.size()) return false;
  return std::stol(second.digits) == std::stol(first.digits) + 1;
}

// The columns as scalars, with ranges for three and more that follow each other. `by_number`: named ones too.
std::vector<std::string> ScalarsOf(const std::vector<const ColumnGuess*>& columns, bool by_number) {
  const auto named = [&](const ColumnGuess& column) { return column.named && !by_number; };
  const auto follows = [&](const ColumnGuess& a, const ColumnGuess& b) {
    if (named(a) != named(b)) return false;
    return named(a) ? NameFollows(a.name, b.name) : b.number == a.number + 1;
  };
  std::vector<std::string> scalars;
  for (size_t i = 0; i < columns.size();) {
    size_t end = i + 1;
    while (end < columns.size() && follows(*columns[end - 1], *columns[end])) ++end;
    const auto scalar = [&](const ColumnGuess& column) {
      return named(column) ? Quoted(column.name) : std::to_string(column.number);
    };
    if (end - i < 3) {
      scalars.push_back(scalar(*columns[i++]));
      continue;
    }
    const ColumnGuess& first = *columns[i];
    const ColumnGuess& last = *columns[end - 1];
    scalars.push_back(named(first) ? Quoted(first.name + ".." + last.name)
                                   : fmt::format("\"{}..{}\"", first.number, last.number));
    i = end;
  }
  return scalars;
}

// By number when there are too many names for a list of the API.
std::vector<std::string> ScalarsOf(const std::vector<const ColumnGuess*>& columns) {
  constexpr size_t kMostItems = 512;  // deploy/crds/trainingjobs.yaml
  std::vector<std::string> scalars = ScalarsOf(columns, false);
  return scalars.size() <= kMostItems ? scalars : ScalarsOf(columns, true);
}

std::vector<const ColumnGuess*> ColumnsOf(const TableGuess& table, const LabelGuess& label, ColumnType type) {
  std::vector<const ColumnGuess*> columns;
  for (size_t c = 0; c < table.columns.size(); ++c) {
    if (!label.Is(c) && table.columns[c].type == type) columns.push_back(&table.columns[c]);
  }
  return columns;
}

// What decided against some values of a column, as comments.
std::string BecauseText(const std::vector<const ColumnGuess*>& columns) {
  std::string text;
  for (const ColumnGuess* column : columns) {
    for (const std::string& sentence : column->because) text += "      # " + OneLine(sentence) + ".\n";
  }
  return text;
}

std::string PoolText(const JobInput& input) {
  const double cpu = std::max(0.1, std::floor((input.cpus - kCoordinatorCpu) / kUnits * 10) / 10);
  const int64_t memory = std::clamp<int64_t>(
      static_cast<int64_t>(static_cast<double>(input.memory_bytes) * 0.6 / kUnits) >> 20, 256, 8192);
  return fmt::format(
      "# The pool: this machine, which has {}, in {} equal units. A trainer or a parameter server takes one.\n"
      "apiVersion: medley.dev/v1alpha1\n"
      "kind: ResourcePool\n"
      "metadata: {{name: this-machine}}\n"
      "spec:\n"
      "  class: CPU\n"
      "  unit: {{resources: {{cpu: {}m, memory: {}Mi}}}}\n"
      "  limit: {}\n"
      "  price: {{usdPerUnitHour: \"0.01\"}}   # made up: write what an hour of a unit costs you\n",
      Counted(input.cpus, "CPU"), kUnits, std::lround(cpu * 1000), memory, kUnits);
}

// Absent for the default.
std::string TaskField(model::Task task) {
  return task == model::Task::kBinary ? "" : fmt::format("task: {}, ", model::TaskName(task));
}

std::string LabelText(const TableGuess& table, const LabelGuess& label) {
  if (label.task == model::Task::kMultiLabel) {
    std::vector<const ColumnGuess*> columns;
    for (const size_t column : label.columns) columns.push_back(&table.columns[column]);
    const std::string list = ListOf("columns", ScalarsOf(columns));
    std::string text = fmt::format("      # Several labels of 0 and 1: {}.\n      label:\n", Plain(label.why));
    for (size_t begin = 0; begin < list.size();) {
      const size_t end = list.find('\n', begin) + 1;
      text += "  " + list.substr(begin, end - begin);
      begin = end;
    }
    return text;
  }
  const ColumnGuess& column = table.columns[label.column];
  std::string text = fmt::format("      # The label is column {}: {}.", Plain(ColumnText(column)), Plain(label.why));
  const std::string only = fmt::format("      label: {{column: {}}}\n", ColumnScalar(column));
  if (label.task == model::Task::kRegression) {
    const std::string log = fmt::format("      label: {{column: {}, transform: Log1p}}\n", ColumnScalar(column));
    return text + " It holds numbers.\n" + (label.log ? log : only);
  }
  if (label.task == model::Task::kMultiClass) {
    text += fmt::format(" Its values are {} classes:\n", label.classes.size());
    for (const auto& [name, rows] : label.classes) {
      text += fmt::format("      #   {} ({})\n", Plain(Quoted(name)), Counted(rows, "row"));
    }
    return text + only;
  }
  if (label.positive.empty()) {
    text +=
        fmt::format(" It holds 1 ({}) and 0 ({}).\n", Counted(label.positives, "row"), Counted(label.negatives, "row"));
    return text + only;
  }
  text += fmt::format("\n      # {} ({}) counts as 1, {} ({}) as 0.\n", Plain(Quoted(label.positive)),
                      Counted(label.positives, "row"), Plain(Quoted(label.negative)), Counted(label.negatives, "row"));
  return text +
         fmt::format("      label: {{column: {}, positive: {}}}\n", ColumnScalar(column), Quoted(label.positive));
}

std::string LeftOutText(const TableGuess& table, const LabelGuess& label) {
  std::string text;
  for (size_t c = 0; c < table.columns.size(); ++c) {
    const ColumnGuess& column = table.columns[c];
    if (label.Is(c)) continue;
    if (column.type == ColumnType::kIdentifier) {
      text += BecauseText({&column});
      text += fmt::format("      # Left out: {}, which is different in every row.\n", Plain(ColumnText(column)));
    } else if (column.type == ColumnType::kConstant) {
      text += fmt::format("      # Left out: {}, which is the same in every row.\n", Plain(ColumnText(column)));
    }
  }
  return text;
}

// The texts of all columns that mean a missing number.
std::string MissingText(const TableGuess& table, const LabelGuess& label) {
  std::vector<std::string> texts;
  for (size_t c = 0; c < table.columns.size(); ++c) {
    if (label.Is(c)) continue;
    for (const std::string& text : table.columns[c].missing_texts) {
      const std::string scalar = Quoted(text);
      if (std::ranges::find(texts, scalar) == texts.end() && texts.size() < kMostMissing) texts.push_back(scalar);
    }
  }
  return texts.empty() ? "" : ListOf("missing", texts);
}

bool IsDayFirst(const std::vector<const ColumnGuess*>& dates) {
  return std::ranges::any_of(dates, [](const ColumnGuess* date) { return date->day_first; });
}

std::string SchemaText(const TableGuess& table, const LabelGuess& label, int buckets) {
  const auto categorical = ColumnsOf(table, label, ColumnType::kCategorical);
  const auto numeric = ColumnsOf(table, label, ColumnType::kNumeric);
  const auto dates = ColumnsOf(table, label, ColumnType::kDate);
  std::string text = fmt::format("    schema:\n      header: {}\n", table.header) + LabelText(table, label);
  for (const std::string& sentence : label.because) text += "      # " + OneLine(sentence) + ".\n";
  for (const std::string& sentence : FindLeaks(table, label)) text += "      # " + OneLine(sentence) + ".\n";
  for (const std::string& sentence : FindWeights(table, label)) text += "      # " + OneLine(sentence) + ".\n";
  if (!categorical.empty()) {
    text += "      # Text. Numbers that are names, such as postal codes, belong here too.\n" + BecauseText(categorical);
    text += ListOf("categorical", ScalarsOf(categorical));
  }
  if (!numeric.empty()) text += BecauseText(numeric) + ListOf("numeric", ScalarsOf(numeric));
  if (!dates.empty()) text += BecauseText(dates) + ListOf("dates", ScalarsOf(dates));
  if (IsDayFirst(dates)) text += "      dayFirst: true\n";
  text += MissingText(table, label);
  if (!numeric.empty() || !dates.empty()) {
    text += fmt::format(
        "      numericBuckets: {}   # numbers are also divided into {} ranges, each with weights of its own\n", buckets,
        buckets);
  }
  return text + LeftOutText(table, label);
}

// Whether models are evaluated during the training.
bool Evaluates(const JobInput& input) {
  return input.test.has_value() || input.validation.has_value() || input.validation_fraction > 0;
}

std::string DataText(const JobInput& input, const TableGuess& table, const LabelGuess& label) {
  const bool on_disk = !input.folder.empty();
  const auto source = [&](const char* key, const std::string& path, const std::string& format) {
    return fmt::format("    {}: {{uri: {}, format: {}}}\n", key, Quoted(on_disk ? "file:///data/" + path : path),
                       format.empty() ? input.format : format);
  };
  std::string text = "  data:\n" + source("train", input.train, "");
  if (input.validation) {
    text += "    # These rows choose the best model, and say when the training ends.\n";
    text += source("validation", *input.validation, input.validation_format);
  } else if (input.validation_fraction > 0) {
    text += "    # A part of the rows is not trained on: it chooses the best model, and says when the training ends.\n";
    text += fmt::format("    validation: {{fraction: {}, seed: 1}}\n", input.validation_fraction);
  }
  if (input.test) {
    text += source("test", *input.test, input.test_format);
  } else {
    text += Evaluates(input)
                ? "    # The quality on the validation data is a little too good, because they choose the model. Other "
                  "rows,\n"
                  "    # in a file of their own, measure it fairly (medley init --test FILE writes this line):\n    # "
                : "    # Without test data the model is not evaluated: its quality on rows that it has not seen stays "
                  "unknown. Put\n"
                  "    # some rows aside in another file and name it here (medley init --test FILE writes this "
                  "line):\n    # ";
    text += source("test", on_disk ? "FILE" : "s3://BUCKET/FILE", "").substr(4);
  }
  text += SchemaText(table, label, Buckets(input.rows, label));
  if (label.weight) {
    text += fmt::format("    weight: {}   # how much a row counts; the column is no feature\n",
                        ColumnScalar(table.columns[*label.weight]));
  }
  if (input.bad_rows > 0) {
    const double share =
        static_cast<double>(input.bad_rows) / static_cast<double>(std::max<int64_t>(1, input.sample_rows));
    const auto allowed = std::max<int64_t>(10, std::llround(2 * share * static_cast<double>(input.rows)));
    text += fmt::format("    maxBadRows: {}   # {} of the first {} cannot be read\n", allowed, input.bad_rows,
                        Counted(input.sample_rows, "row"));
  }
  if (!on_disk) return text;  // no volume
  return text +
         fmt::format("    volume: {{hostPath: {{path: {}}}, mountPath: /data}}\n", Quoted(input.folder.string()));
}

int EmbeddingDimOf(const TableGuess& table, const LabelGuess& label) {
  std::vector<int64_t> values;
  for (const ColumnGuess* column : ColumnsOf(table, label, ColumnType::kCategorical)) {
    values.push_back(std::ssize(column->values));
  }
  return SharedEmbeddingDim(values);
}

std::string TrainingText(const JobInput& input, const LabelGuess& label) {
  const char* const decay = Decays(input.rows, label) ? ", weightDecay: 0.001, rowDecay: 0.001" : "";
  std::string text = fmt::format(
      "  training:\n"
      "    epochs: {}         # passes over the data\n"
      "    batchSize: {}\n"
      "    microBatches: 2\n"
      "    optimizer: {{name: adagrad, learningRate: 0.01{}}}\n",
      Epochs(input.rows), BatchSize(input.rows), decay);
  if (!Evaluates(input)) return text;
  return text +
         fmt::format(
             "    evaluation: {{everyEpochs: 1}}\n"
             "    earlyStopping: {{metric: {}, patience: 3}}   # ends when three evaluations in a row are no better\n",
             label.task == model::Task::kRegression ? "mse" : "logLoss");
}

}  // namespace

std::string JobText(const JobInput& input, const TableGuess& table, const LabelGuess& label) {
  std::string text = fmt::format(
      "# Written by medley init, which looked at {} of {}. What it guessed is in comments; change what is\n"
      "# wrong. Run it:   medley run {}\n",
      Counted(input.sample_rows, "row"), Plain(input.train), Plain(input.file));
  text += PoolText(input);
  text += fmt::format(
      "---\n"
      "apiVersion: medley.dev/v1alpha1\n"
      "kind: TrainingJob\n"
      "metadata: {{name: {}}}\n"
      "spec:\n"
      "  model: {{name: ctrdnn, {}parameters: {{embeddingDim: {}, embeddingRows: 65536, hidden: [64, 32]}}}}\n",
      input.name, TaskField(label.task), EmbeddingDimOf(table, label));
  text += DataText(input, table, label) + TrainingText(input, label);
  return text +
         "  # objective: {deadline: 30m, maxUsdPerHour: \"1\"}   # goals; the cheapest plan within them is chosen\n"
         "  checkpoint:\n"
         "    interval: 30s\n"
         "    volume: {persistentVolumeClaim: {claimName: checkpoints}, mountPath: /checkpoints}\n";
}

double ValidationFraction(int64_t rows) {
  if (rows < 100) return 0;
  return rows < 1000 ? 0.2 : 0.1;
}

std::string JobNameOf(const std::filesystem::path& file) {
  constexpr size_t kLongest = 30;
  std::string stem = file.filename().string();
  stem = stem.substr(0, stem.find('.', 1));
  std::string name;
  for (const char c : stem) {
    const bool upper = c >= 'A' && c <= 'Z';
    const char lower = upper ? static_cast<char>(c - 'A' + 'a') : c;
    if ((lower >= 'a' && lower <= 'z') || (lower >= '0' && lower <= '9')) {
      name += lower;
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  name = name.substr(0, kLongest);
  while (!name.empty() && name.back() == '-') name.pop_back();
  if (name.empty()) return "job";
  return name.front() >= 'a' && name.front() <= 'z' ? name : "job-" + name;
}

}  // namespace medley::cli
