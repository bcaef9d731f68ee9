// The parts of spec.data: where samples come from, and what their columns or arrays mean. Immutable values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/model/data_format.h"
#include "common/model/task.h"

namespace medley::model {

struct SourceSpec {
  std::string uri;                           // file:///data/x.csv; arrays: of the only input
  std::string format;                        // a name of data_format.h
  std::string labels;                        // arrays: the URI of the labels' file; empty only for Task::kOwnLoss
  std::map<std::string, std::string> files;  // arrays: the URI of each of several inputs, by its name; instead of uri

  bool arrays() const { return HoldsArrays(format); }
};

// One argument of a model from PyTorch, and where its numbers come from.
struct InputSpec {
  std::string name;            // of the argument of forward
  std::string type;            // float32, int64; csv and tsv also: category, whose values are hashed
  std::vector<int64_t> shape;  // of one sample; empty with `columns`: their number
  std::string storage;         // raw: uint8, int32, int64, float32; empty: that of `type`
  double scale = 1;            // float32: stored numbers are multiplied by it first
  std::vector<double> mean;    // float32: then it is subtracted; empty: 0; one for each index of the first axis, or one
  std::vector<double> deviation;          // float32: then they are divided by it; as mean; empty: 1
  std::vector<int> columns;               // csv, tsv: -1 for one that is named
  std::vector<std::string> column_names;  // as ColumnNames
};

// What is read from a column of numbers: the number, or a part of a date and time. kTime: seconds since 1970 in UTC.
enum class ColumnPart { kValue, kTime, kYear, kMonth, kWeekday, kHour };
inline constexpr ColumnPart kDateParts[] = {ColumnPart::kTime, ColumnPart::kYear, ColumnPart::kMonth,
                                            ColumnPart::kWeekday, ColumnPart::kHour};

// Columns that a manifest names as the file's header does. Lists are empty, or have an entry for each column of the
// schema's list: "" for one that is given by its number.
struct ColumnNames {
  std::string label;
  std::vector<std::string> categorical;
  std::vector<std::string> numeric;
  std::vector<std::string> labels;
  std::string weight;

  bool empty() const {
    return label.empty() && categorical.empty() && numeric.empty() && labels.empty() && weight.empty();
  }
};

// The columns of the data. Column indices count from 0; that of a named column is -1 until a header is read
// (worker/data/columns.h).
struct SchemaSpec {
  Task task = Task::kBinary;       // spec.model.task: how labels are read
  int label_column = -1;           // -1: no column; the labels of kMultiLabel are in label_columns
  std::vector<int> label_columns;  // kMultiLabel: columns of 0 and 1
  // kBinary: the text that means label 1 (trailing "." ignored); empty: the column is 0/1.
  std::string label_positive;
  // kMultiClass: the names of the classes, in the order of their numbers; empty: those of the training data, sorted.
  std::vector<std::string> label_classes;
  // kRegression, label.transform: Log1p: the model learns log(1 + label), so labels are above -1.
  bool label_log = false;
  int weight_column = -1;  // spec.data.weight: the weights of the rows, finite and >= 0; -1: each has weight 1
  std::vector<int> categorical;
  std::vector<int> numeric;
  // For each numeric column; empty: all are numbers. The columns of schema.dates are in `numeric` once for each part.
  std::vector<ColumnPart> parts;
  bool day_first = false;            // 1/2/2024 is the first of February
  std::vector<std::string> missing;  // texts that mean a missing number, beside those of worker/data/number.h
  // Numeric columns are also put into this many quantile buckets of the training data and embedded; 0: not embedded.
  int numeric_buckets = 0;
  bool header = false;
  ColumnNames names;
  // spec.data.inputs. Of csv and tsv, categorical and numeric hold their columns one after the other.
  std::vector<InputSpec> inputs;
  // Which columns of `categorical` hold whole numbers that are taken as they are. Empty: all are hashed.
  std::vector<bool> whole_numbers;
  int label_count = 1;        // arrays of kRegression and kMultiLabel: labels of one sample
  std::string label_storage;  // raw: uint8, int32, int64, float32; empty: uint8
};

// The most columns of one list of a schema, after ranges and dates are spelled out.
inline constexpr size_t kMostColumns = 4096;

// Samples that choose the best model and stop the training early.
struct ValidationSpec {
  double fraction = 0;  // of the rows of the training data, which are put aside: worker/data/row_split.h; 0: a source
  uint64_t seed = 1;    // of `fraction`
  SourceSpec source;
};

struct DataSpec {
  SourceSpec train;
  std::optional<ValidationSpec> validation;
  std::optional<SourceSpec> test;  // without validation data, these are the validation data too
  SchemaSpec schema;
  int64_t max_bad_rows = 0;
};

// The files that are only evaluated, in the order of their use.
inline std::vector<SourceSpec> EvaluationSources(const DataSpec& data) {
  std::vector<SourceSpec> sources;
  if (data.validation && data.validation->fraction <= 0) sources.push_back(data.validation->source);
  if (data.test) sources.push_back(*data.test);
  return sources;
}

// What the i-th numeric column holds.
inline ColumnPart PartOf(const SchemaSpec& schema, size_t i) {
  return i < schema.parts.size() ? schema.parts[i] : ColumnPart::kValue;
}

// As in an export: "time". Empty for kValue.
inline const char* PartName(ColumnPart part) {
  constexpr const char* kNames[] = {"", "time", "year", "month", "weekday", "hour"};
  return kNames[static_cast<size_t>(part)];
}

}  // namespace medley::model
