#include "worker/data/table_fit.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <set>
#include <utility>

#include "common/base/status.h"
#include "common/base/utf8.h"
#include "worker/data/columns.h"
#include "worker/data/label_values.h"
#include "worker/data/schema.h"

namespace medley::worker {
namespace {

// Checks that the labels differ. `first`: those of the first row.
absl::StatusOr<bool> LabelsDiffer(const TableRows& rows, size_t labels, std::vector<double>& first) {
  bool differ = false;
  MEDLEY_RETURN_IF_ERROR(rows.ForEach(RowSet::kTraining, kLabels, [&](const ParsedRows& piece) {
    const std::vector<double>& all = piece.labels;
    if (first.empty() && !all.empty()) first.assign(all.begin(), all.begin() + static_cast<int64_t>(labels));
    for (size_t i = 0; i < all.size() && !differ; ++i) differ = all[i] != first[i % labels];
    return absl::OkStatus();
  }));
  return differ;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> NumberClasses(TableRows& rows, const std::string& path) {
  const std::vector<TablePiece>& pieces = rows.table().pieces;
  std::set<std::string> names;
  for (const TablePiece& piece : pieces) names.insert(piece.classes.begin(), piece.classes.end());
  if (names.size() > model::kMostClasses) {
    return base::InvalidArgument(
        "{}: the label has more than {} different values; for a number set spec.model.task: regression", path,
        model::kMostClasses);
  }
  std::vector<std::vector<double>> numbers;
  for (const TablePiece& piece : pieces) {
    std::vector<double>& of_piece = numbers.emplace_back();
    for (const std::string& name : piece.classes) {
      of_piece.push_back(static_cast<double>(std::distance(names.begin(), names.find(name))));
    }
  }
  rows.NumberLabels(std::move(numbers));
  return std::vector<std::string>(names.begin(), names.end());
}

absl::StatusOr<Transform> FitTransform(const TableRows& rows, const model::SchemaSpec& schema, LabelTransform label) {
  Transform transform;
  transform.label = std::move(label);
  transform.header = rows.table().header;
  const auto count = static_cast<double>(rows.rows());
  std::vector<double> values;
  if (schema.task == model::Task::kRegression) {
    values.reserve(static_cast<size_t>(rows.rows()));
    MEDLEY_RETURN_IF_ERROR(rows.ForEach(RowSet::kTraining, kLabels, [&](const ParsedRows& piece) {
      values.insert(values.end(), piece.labels.begin(), piece.labels.end());
      return absl::OkStatus();
    }));
    transform.label = FitLabel(values, schema.label_log);
  }
  if (HasWeights(schema)) {
    double weights = 0;
    MEDLEY_RETURN_IF_ERROR(rows.ForEach(RowSet::kTraining, kWeights, [&](const ParsedRows& piece) {
      for (const double weight : piece.weights) weights += weight / count;
      return absl::OkStatus();
    }));
    if (weights > 0) transform.weight_mean = weights;
  }
  for (size_t c = 0; c < schema.numeric.size(); ++c) {
    MEDLEY_RETURN_IF_ERROR(rows.Column(RowSet::kTraining, c, values));
    transform.columns.push_back(FitNumericInPlace(values, schema.numeric_buckets));
  }
  return transform;
}

absl::StatusOr<bool> HasBothLabels(const TableRows& rows) {
  bool found[2] = {};
  MEDLEY_RETURN_IF_ERROR(rows.ForEach(RowSet::kTraining, kLabels, [&](const ParsedRows& piece) {
    for (const double label : {0.0, 1.0}) {
      bool& has = found[static_cast<size_t>(label)];
      has = has || std::ranges::find(piece.labels, label) != piece.labels.end();
    }
    return absl::OkStatus();
  }));
  return found[0] && found[1];
}

absl::Status CheckClasses(const TableRows& rows, const SourceFile& file, const model::SchemaSpec& schema,
                          std::stop_token stop) {
  const absl::Status& joined = rows.table().status;
  MEDLEY_ASSIGN_OR_RETURN(const bool both, HasBothLabels(rows));
  if (joined.ok() && both) return joined;
  LabelValues values(schema, file.delimiter);
  MEDLEY_RETURN_IF_ERROR(values.AddFiles(file, LabelValues::Until::kEnd, std::move(stop)));
  if (joined.ok() || !values.HasEitherClass()) MEDLEY_RETURN_IF_ERROR(values.Check(file.path));
  MEDLEY_RETURN_IF_ERROR(joined);
  return base::InvalidArgument("{}: all rows of one class are among those that cannot be parsed; the labels are {}",
                               file.path, values.Describe());
}

absl::Status CheckWeights(const TableRows& rows, RowSet set, const std::string& path, const model::SchemaSpec& schema) {
  if (!HasWeights(schema)) return absl::OkStatus();
  bool any = false;
  MEDLEY_RETURN_IF_ERROR(rows.ForEach(set, kWeights, [&](const ParsedRows& piece) {
    any = any || std::ranges::any_of(piece.weights, [](double weight) { return weight > 0; });
    return absl::OkStatus();
  }));
  if (any) return absl::OkStatus();
  return base::InvalidArgument("{}: the weight in column {} (spec.data.weight) is 0 in every row", path,
                               WeightColumnText(schema));
}

absl::Status CheckDiffer(const TableRows& rows, const std::string& path, const model::SchemaSpec& schema,
                         const std::vector<std::string>& classes) {
  std::vector<double> first;
  MEDLEY_ASSIGN_OR_RETURN(const bool differ, LabelsDiffer(rows, static_cast<size_t>(ShapeOf(schema).labels), first));
  if (differ) return absl::OkStatus();
  switch (schema.task) {
    case model::Task::kRegression:
      return base::InvalidArgument("{}: the label in column {} is {} in every row: nothing can be learnt", path,
                                   LabelColumnText(schema), first.front());
    case model::Task::kMultiClass:
      return base::InvalidArgument(
          "{}: the label in column {} is '{}' in every row. Rows of several classes are needed", path,
          LabelColumnText(schema), base::Printable(classes[static_cast<size_t>(first.front())]));
    case model::Task::kMultiLabel:
      return base::InvalidArgument("{}: each column of spec.data.schema.label.columns has one value in all rows", path);
    case model::Task::kBinary:
    case model::Task::kOwnLoss:
      break;
  }
  return absl::OkStatus();
}

}  // namespace medley::worker
