#include "cli/data/job_text.h"

#include <absl/strings/str_join.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/format.h"

namespace medley::cli {
namespace {

constexpr int kUnits = 3;                // of the pool: two trainers and a parameter server
constexpr double kCoordinatorCpu = 0.4;  // left for the coordinator and the rest of the cluster
constexpr size_t kLineWidth = 100;

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

std::vector<std::string> ColumnsOf(const TableGuess& table, size_t label, ColumnType type) {
  std::vector<std::string> columns;
  for (size_t c = 0; c < table.columns.size(); ++c) {
    if (c != label && table.columns[c].type == type) columns.push_back(ColumnScalar(table.columns[c]));
  }
  return columns;
}

// A power of two that makes some hundred steps of an epoch.
int BatchSize(int64_t rows) {
  int batch = 16;
  while (batch < 2048 && rows / (batch * 2) >= 50) batch *= 2;
  return batch;
}

int Epochs(int64_t rows) { return rows < 10'000 ? 20 : rows < 200'000 ? 10 : 3; }

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
  const ColumnGuess& column = table.columns[label.column];
  std::string text = fmt::format("      # The label is column {}: {}.", Plain(ColumnText(column)), Plain(label.why));
  const std::string only = fmt::format("      label: {{column: {}}}\n", ColumnScalar(column));
  if (label.task == model::Task::kRegression) return text + " It holds numbers.\n" + only;
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

std::string LeftOutText(const TableGuess& table, size_t label) {
  std::string text;
  for (size_t c = 0; c < table.columns.size(); ++c) {
    const ColumnGuess& column = table.columns[c];
    if (c == label) continue;
    if (column.type == ColumnType::kIdentifier) {
      text += fmt::format("      # Left out: {}, which is different in every row.\n", Plain(ColumnText(column)));
    } else if (column.type == ColumnType::kConstant) {
      text += fmt::format("      # Left out: {}, which is the same in every row.\n", Plain(ColumnText(column)));
    }
  }
  return text;
}

std::string SchemaText(const TableGuess& table, const LabelGuess& label) {
  const auto categorical = ColumnsOf(table, label.column, ColumnType::kCategorical);
  const auto numeric = ColumnsOf(table, label.column, ColumnType::kNumeric);
  std::string text = fmt::format("    schema:\n      header: {}\n", table.header) + LabelText(table, label);
  if (!categorical.empty()) {
    text += "      # Text. Numbers that are names, such as postal codes, belong here too.\n";
    text += ListOf("categorical", categorical);
  }
  if (!numeric.empty()) {
    text += ListOf("numeric", numeric);
    text += "      numericBuckets: 32   # numbers are also divided into 32 ranges, each with weights of its own\n";
  }
  return text + LeftOutText(table, label.column);
}

std::string DataText(const JobInput& input, const TableGuess& table, const LabelGuess& label) {
  const char* const format = input.delimiter == '\t' ? "tsv" : "csv";
  const auto source = [&](const char* key, const std::string& path) {
    return fmt::format("    {}: {{uri: {}, format: {}}}\n", key, Quoted("file:///data/" + path), format);
  };
  std::string text = "  data:\n" + source("train", input.train);
  if (input.test) {
    text += source("test", *input.test);
  } else {
    text +=
        "    # Without test data the model is not evaluated: its quality on rows that it has not seen stays unknown. "
        "Put\n"
        "    # some rows aside in another file and name it here (medley init --test FILE writes this line):\n    # " +
        source("test", "FILE").substr(4);
  }
  text += SchemaText(table, label);
  if (input.bad_rows > 0) {
    const double share =
        static_cast<double>(input.bad_rows) / static_cast<double>(std::max<int64_t>(1, input.sample_rows));
    const auto allowed = std::max<int64_t>(10, std::llround(2 * share * static_cast<double>(input.rows)));
    text += fmt::format("    maxBadRows: {}   # {} of the first {} cannot be read\n", allowed, input.bad_rows,
                        Counted(input.sample_rows, "row"));
  }
  return text +
         fmt::format("    volume: {{hostPath: {{path: {}}}, mountPath: /data}}\n", Quoted(input.folder.string()));
}

std::string TrainingText(const JobInput& input, model::Task task) {
  std::string text = fmt::format(
      "  training:\n"
      "    epochs: {}         # passes over the data\n"
      "    batchSize: {}\n"
      "    microBatches: 2\n"
      "    optimizer: {{name: adagrad, learningRate: 0.02}}\n",
      Epochs(input.rows), BatchSize(input.rows));
  if (!input.test) return text;
  return text +
         fmt::format(
             "    evaluation: {{everyEpochs: 1}}\n"
             "    earlyStopping: {{metric: {}, patience: 3}}   # ends when three evaluations in a row are no better\n",
             task == model::Task::kRegression ? "mse" : "logLoss");
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
      "  model: {{name: ctrdnn, {}parameters: {{embeddingDim: 8, embeddingRows: 65536, hidden: [64, 32]}}}}\n",
      input.name, TaskField(label.task));
  text += DataText(input, table, label) + TrainingText(input, label.task);
  return text +
         "  # objective: {deadline: 30m, maxUsdPerHour: \"1\"}   # goals; the cheapest plan within them is chosen\n"
         "  checkpoint:\n"
         "    interval: 30s\n"
         "    volume: {persistentVolumeClaim: {claimName: checkpoints}, mountPath: /checkpoints}\n";
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
