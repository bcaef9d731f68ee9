#include "worker/data/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "common/base/hash.h"
#include "common/base/status.h"
#include "common/base/utf8.h"
#include "worker/data/array_dataset.h"
#include "worker/data/columns.h"
#include "worker/data/digest.h"
#include "worker/data/feature_encoder.h"
#include "worker/data/label_values.h"
#include "worker/data/row_split.h"
#include "worker/data/schema.h"
#include "worker/data/source.h"
#include "worker/data/table.h"

namespace medley::worker {
namespace {

// The classes that occur in any piece, sorted. Numbers the labels of the pieces by them.
absl::StatusOr<std::vector<std::string>> NumberClasses(std::vector<TablePiece>& pieces, const std::string& path) {
  std::set<std::string> names;
  for (const TablePiece& piece : pieces) names.insert(piece.classes.begin(), piece.classes.end());
  if (names.size() > model::kMostClasses) {
    return base::InvalidArgument(
        "{}: the label has more than {} different values; for a number set spec.model.task: regression", path,
        model::kMostClasses);
  }
  for (TablePiece& piece : pieces) {
    std::vector<double> numbers;
    for (const std::string& name : piece.classes) {
      numbers.push_back(static_cast<double>(std::distance(names.begin(), names.find(name))));
    }
    for (double& label : piece.rows.labels) label = numbers[static_cast<size_t>(label)];
  }
  return std::vector<std::string>(names.begin(), names.end());
}

Transform Fit(const ParsedTable& table, const model::SchemaSpec& schema, LabelTransform label) {
  Transform transform;
  transform.label = std::move(label);
  transform.header = table.header;
  std::vector<double> values;
  values.reserve(static_cast<size_t>(table.rows));
  if (schema.task == model::Task::kRegression) {
    for (const TablePiece& piece : table.pieces) {
      values.insert(values.end(), piece.rows.labels.begin(), piece.rows.labels.end());
    }
    transform.label = FitLabel(values, schema.label_log);
  }
  double weights = 0;
  for (const TablePiece& piece : table.pieces) {
    for (const double weight : piece.rows.weights) weights += weight / static_cast<double>(table.rows);
  }
  if (weights > 0) transform.weight_mean = weights;
  const size_t width = schema.numeric.size();
  for (size_t c = 0; c < width; ++c) {
    values.clear();
    for (const TablePiece& piece : table.pieces) {
      for (size_t at = c; at < piece.rows.numerics.size(); at += width) values.push_back(piece.rows.numerics[at]);
    }
    transform.columns.push_back(FitNumeric(values, schema.numeric_buckets));
  }
  return transform;
}

// Encodes all rows. The pieces are empty then.
Batch EncodeAll(ParsedTable& table, const Transform& transform, const model::SchemaSpec& schema,
                int64_t embedding_rows) {
  Batch rows;
  rows.shape = ShapeOf(schema);
  const FeatureEncoder encoder(transform, schema, embedding_rows);
  const auto count = [&](int width) { return static_cast<size_t>(table.rows) * static_cast<size_t>(width); };
  rows.ids.reserve(count(rows.shape.fields));
  rows.numerics.reserve(count(rows.shape.numerics));
  rows.labels.reserve(count(rows.shape.labels));
  if (HasWeights(schema)) rows.weights.reserve(count(1));
  for (TablePiece& piece : table.pieces) {
    encoder.Encode(piece.rows, rows);
    piece.rows = {};
  }
  return rows;
}

// The rows for validation, when the source is the training data and some are put aside.
absl::StatusOr<std::optional<ParsedTable>> TakeRows(const model::DataSpec& spec, const SourceFile& file, bool training,
                                                    ParsedTable& table) {
  if (!training || !spec.validation || spec.validation->fraction <= 0) return std::nullopt;
  ParsedTable taken = TakeValidation(*spec.validation, spec.schema, table);
  MEDLEY_RETURN_IF_ERROR(CheckParts(*spec.validation, table.rows, taken.rows, file.path));
  return taken;
}

std::string DigestOfBoth(const std::string& rows, const std::string& validation) {
  return base::HashHex(rows + validation) + base::HashHex(validation + rows);
}

bool HasLabel(const ParsedTable& table, double label) {
  return std::ranges::any_of(table.pieces, [&](const TablePiece& piece) {
    return std::ranges::find(piece.rows.labels, label) != piece.rows.labels.end();
  });
}

// Some row must count.
absl::Status CheckWeights(const ParsedTable& table, const std::string& path, const model::SchemaSpec& schema) {
  if (!HasWeights(schema)) return absl::OkStatus();
  for (const TablePiece& piece : table.pieces) {
    if (std::ranges::any_of(piece.rows.weights, [](double weight) { return weight > 0; })) return absl::OkStatus();
  }
  return base::InvalidArgument("{}: the weight in column {} (spec.data.weight) is 0 in every row", path,
                               WeightColumnText(schema));
}

// The table's status, or an error that names the values of the label column when these are why rows cannot be used.
absl::Status CheckClasses(const ParsedTable& table, const SourceFile& file, const model::SchemaSpec& schema,
                          std::stop_token stop) {
  const absl::Status& joined = table.status;
  if (joined.ok() && HasLabel(table, 0) && HasLabel(table, 1)) return joined;
  LabelValues values(schema, file.delimiter);
  MEDLEY_RETURN_IF_ERROR(values.AddFiles(file, LabelValues::Until::kEnd, std::move(stop)));
  if (joined.ok() || !values.HasEitherClass()) MEDLEY_RETURN_IF_ERROR(values.Check(file.path));
  MEDLEY_RETURN_IF_ERROR(joined);
  return base::InvalidArgument("{}: all rows of one class are among those that cannot be parsed; the labels are {}",
                               file.path, values.Describe());
}

// Checks that the labels of the training data differ, for tasks other than kBinary.
absl::Status CheckDiffer(const ParsedTable& table, const std::string& path, const model::SchemaSpec& schema,
                         const std::vector<std::string>& classes) {
  const auto labels = static_cast<size_t>(ShapeOf(schema).labels);
  std::vector<double> first;
  for (const TablePiece& piece : table.pieces) {
    const std::vector<double>& all = piece.rows.labels;
    if (first.empty() && !all.empty()) first.assign(all.begin(), all.begin() + static_cast<int64_t>(labels));
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i] != first[i % labels]) return absl::OkStatus();
    }
  }
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

}  // namespace

absl::StatusOr<std::shared_ptr<const Dataset>> Dataset::Load(const model::SourceSpec& source,
                                                             const model::DataSpec& spec, const Transform* transform,
                                                             const LoadOptions& options) {
  if (source.arrays()) return LoadFromArrays(source, spec, transform, options);
  MEDLEY_ASSIGN_OR_RETURN(const SourceFile at, FileOf(source, options.root));
  LabelTransform label;
  label.classes = transform != nullptr ? transform->label.classes : spec.schema.label_classes;
  TableOptions table_options{.embedding_rows = options.embedding_rows,
                             .threads = options.threads,
                             .stop = options.stop,
                             .on_piece = options.on_piece,
                             .progress = options.progress,
                             .classes = label.classes,
                             .header = {},
                             .max_bad_rows = spec.max_bad_rows};
  if (transform != nullptr) table_options.header = transform->header;
  MEDLEY_ASSIGN_OR_RETURN(ParsedTable table, ParseTable(at, spec.schema, table_options));
  if (spec.schema.task == model::Task::kMultiClass && label.classes.empty()) {
    MEDLEY_ASSIGN_OR_RETURN(label.classes, NumberClasses(table.pieces, at.path));
  }
  if (spec.schema.task == model::Task::kBinary) {
    MEDLEY_RETURN_IF_ERROR(CheckClasses(table, at, spec.schema, options.stop));
  }
  MEDLEY_RETURN_IF_ERROR(table.status);
  MEDLEY_ASSIGN_OR_RETURN(std::optional<ParsedTable> aside, TakeRows(spec, at, transform == nullptr, table));
  if (aside && spec.schema.task == model::Task::kBinary && !(HasLabel(table, 0) && HasLabel(table, 1))) {
    return base::InvalidArgument("{}: spec.data.validation puts all rows of one class aside; use another seed",
                                 at.path);
  }
  if (transform == nullptr && spec.schema.task != model::Task::kOwnLoss) {
    MEDLEY_RETURN_IF_ERROR(CheckDiffer(table, at.path, spec.schema, label.classes));
  }
  MEDLEY_RETURN_IF_ERROR(CheckWeights(table, at.path, spec.schema));
  if (aside) MEDLEY_RETURN_IF_ERROR(CheckWeights(*aside, at.path + " (spec.data.validation)", spec.schema));
  std::shared_ptr<Dataset> data(new Dataset());
  data->bad_rows_ = table.bad_rows;
  data->transform_ = transform != nullptr ? *transform : Fit(table, spec.schema, std::move(label));
  if (data->transform_.columns.size() != spec.schema.numeric.size()) {
    return base::InvalidArgument("{}: the transform has {} numeric columns, the schema has {}", at.path,
                                 data->transform_.columns.size(), spec.schema.numeric.size());
  }
  data->digest_ = DigestOf(table.pieces, ShapeOf(spec.schema), data->transform_);
  if (aside) {
    const std::string digest = DigestOf(aside->pieces, ShapeOf(spec.schema), data->transform_);
    data->digest_ = DigestOfBoth(data->digest_, digest);
    data->validation_ =
        FromBatch(EncodeAll(*aside, data->transform_, spec.schema, options.embedding_rows), data->transform_);
  }
  data->rows_ = EncodeAll(table, data->transform_, spec.schema, options.embedding_rows);
  return data;
}

absl::StatusOr<std::shared_ptr<const Dataset>> Dataset::LoadFromArrays(const model::SourceSpec& source,
                                                                       const model::DataSpec& spec,
                                                                       const Transform* transform,
                                                                       const LoadOptions& options) {
  ArrayOptions arrays{
      .root = options.root, .stop = options.stop, .on_piece = options.on_piece, .progress = options.progress};
  arrays.test = transform != nullptr;
  if (transform != nullptr) arrays.classes = transform->label.classes;
  MEDLEY_ASSIGN_OR_RETURN(ArraySamples samples, LoadArrays(source, spec.schema, arrays));
  std::shared_ptr<Dataset> data(new Dataset());
  data->rows_ = std::move(samples.rows);
  data->transform_.label.classes = std::move(samples.classes);
  data->digest_ = DigestOf(data->rows_, data->transform_.label.classes);
  if (transform == nullptr && spec.validation && spec.validation->fraction > 0) {
    Batch aside = TakeValidation(*spec.validation, data->rows_);
    MEDLEY_RETURN_IF_ERROR(CheckParts(*spec.validation, data->rows_.samples, aside.samples, source.uri));
    data->validation_ = FromBatch(std::move(aside), data->transform_);
  }
  return data;
}

std::shared_ptr<const Dataset> Dataset::FromBatch(Batch rows, Transform transform) {
  std::shared_ptr<Dataset> data(new Dataset());
  data->rows_ = std::move(rows);
  data->transform_ = std::move(transform);
  return data;
}

void Dataset::Gather(std::span<const int64_t> indices, Batch& batch) const {
  const size_t fields = static_cast<size_t>(rows_.shape.fields);
  const size_t width = static_cast<size_t>(rows_.shape.numerics);
  const size_t labels = static_cast<size_t>(rows_.shape.labels);
  batch.shape = rows_.shape;
  batch.samples = static_cast<int>(indices.size());
  batch.ids.resize(indices.size() * fields);
  batch.numerics.resize(indices.size() * width);
  batch.labels.resize(indices.size() * labels);
  batch.weights.resize(rows_.weights.empty() ? 0 : indices.size());
  for (size_t i = 0; i < indices.size(); ++i) {
    const size_t row = static_cast<size_t>(indices[i]);
    std::copy_n(rows_.ids.data() + row * fields, fields, batch.ids.data() + i * fields);
    std::copy_n(rows_.numerics.data() + row * width, width, batch.numerics.data() + i * width);
    std::copy_n(rows_.labels.data() + row * labels, labels, batch.labels.data() + i * labels);
    if (!batch.weights.empty()) batch.weights[i] = rows_.weights[row];
  }
}

}  // namespace medley::worker
