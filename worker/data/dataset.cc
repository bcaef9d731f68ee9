#include "worker/data/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <thread>

#include "common/base/status.h"
#include "common/base/utf8.h"
#include "worker/data/array_dataset.h"
#include "worker/data/columns.h"
#include "worker/data/digest.h"
#include "worker/data/feature_encoder.h"
#include "worker/data/label_values.h"
#include "worker/data/row_parser.h"
#include "worker/data/schema.h"
#include "worker/data/source.h"
#include "worker/data/text_file.h"

namespace medley::worker {
namespace {

// A piece of the file that one thread parses, and the result.
struct Piece {
  std::string_view text;  // valid until its file has been parsed
  size_t file = 0;
  Batch rows;
  std::vector<std::string> classes;  // names of the classes by the numbers that `rows` has for them
  int64_t lines = 0;
  int64_t bad_rows = 0;
  int64_t first_bad_line = 0;  // within the piece, from 1
  std::string first_bad;
};

// Removes the first line, without its end, from the text.
std::string_view TakeLine(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

// Divides the text at line ends into about `count` pieces.
std::vector<Piece> Cut(std::string_view text, size_t count) {
  std::vector<Piece> pieces;
  const size_t size = text.size() / count + 1;
  while (!text.empty()) {
    size_t end = text.size() <= size ? std::string_view::npos : text.find('\n', size);
    end = end == std::string_view::npos ? text.size() : end + 1;
    pieces.emplace_back().text = text.substr(0, end);
    text.remove_prefix(end);
  }
  return pieces;
}

void ParsePiece(const model::SchemaSpec& schema, char delimiter, const std::vector<std::string>& classes,
                const LoadOptions& options, Piece& piece) {
  RowParser parser(schema, delimiter, options.embedding_rows, classes);
  std::string_view text = piece.text;
  while (!text.empty() && !options.stop.stop_requested()) {
    const std::string_view line = TakeLine(text);
    ++piece.lines;
    if (Trim(line).empty()) continue;
    const absl::Status status =
        line.size() > kLongestLine
            ? base::InvalidArgument("the line has {} bytes; a row has at most 64 MiB: are its line ends those of CSV?",
                                    line.size())
            : parser.Append(line, piece.rows);
    if (!status.ok() && piece.bad_rows++ == 0) {
      piece.first_bad_line = piece.lines;
      piece.first_bad = base::Message(status);
    }
  }
  piece.classes = parser.labels().classes();
}

// `classes`: those of the training data, when they are known.
void ParseAll(std::span<Piece> pieces, const model::SchemaSpec& schema, char delimiter,
              const std::vector<std::string>& classes, const LoadOptions& options) {
  const size_t count = std::min(pieces.size(), static_cast<size_t>(std::max(1, options.threads)));
  std::vector<std::jthread> threads;  // after what they use: they end last
  for (size_t t = 0; t < count; ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = t; i < pieces.size(); i += count) {
        ParsePiece(schema, delimiter, classes, options, pieces[i]);
        if (options.on_piece) options.on_piece();
      }
    });
  }
}

// Adds the pieces of paths[index]. `header` is that of the first file, in which columns with numbers are counted.
absl::Status ParseFile(const std::vector<std::string>& paths, size_t index, char delimiter,
                       const model::SchemaSpec& schema, const std::vector<std::string>& classes,
                       const LoadOptions& options, std::string& header, std::vector<Piece>& pieces) {
  constexpr size_t kPieceBytes = 1 << 20;
  const std::string& path = paths[index];
  MEDLEY_ASSIGN_OR_RETURN(const std::string file, ReadText(path));
  std::string_view text = WithoutMark(file);
  model::SchemaSpec found = schema;
  if (schema.header) {
    const std::string_view line = Trim(TakeLine(text));
    if (index == 0) header = line;
    if (schema.names.empty() && line != header) {
      return base::InvalidArgument(
          "{}: the header differs from that of {}: give the names of columns instead of numbers in spec.data.schema",
          path, paths[0]);
    }
    MEDLEY_ASSIGN_OR_RETURN(found, FindColumns(schema, line, delimiter, path));
  }
  std::vector<Piece> parts = Cut(text, text.size() / kPieceBytes + 1);
  for (Piece& part : parts) part.file = index;
  ParseAll(parts, found, delimiter, classes, options);
  std::ranges::move(parts, std::back_inserter(pieces));
  return absl::OkStatus();
}

template <typename T>
void MoveTo(std::vector<T>& to, std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
  std::vector<T>().swap(from);
}

// Concatenates the pieces' rows. With too many bad rows returns the first error with its line in the file.
absl::Status Join(std::vector<Piece>& pieces, const std::vector<std::string>& paths, const std::string& path,
                  int64_t first_line, int64_t max_bad_rows, Batch& rows, int64_t& bad_rows) {
  std::string first_bad;
  int64_t line = first_line;
  int64_t samples = 0;
  size_t file = 0;
  size_t ids = 0, numerics = 0, labels = 0;
  for (const Piece& piece : pieces) {
    ids += piece.rows.ids.size();
    numerics += piece.rows.numerics.size();
    labels += piece.rows.labels.size();
  }
  rows.ids.reserve(ids);  // growing would need the memory twice
  rows.numerics.reserve(numerics);
  rows.labels.reserve(labels);
  for (Piece& piece : pieces) {
    if (piece.file != file) line = first_line;
    file = piece.file;
    if (piece.bad_rows > 0 && bad_rows == 0) {
      first_bad = fmt::format("{}:{}: {}", paths[file], line + piece.first_bad_line, piece.first_bad);
    }
    bad_rows += piece.bad_rows;
    line += piece.lines;
    samples += piece.rows.samples;
    MoveTo(rows.ids, piece.rows.ids);
    MoveTo(rows.numerics, piece.rows.numerics);
    MoveTo(rows.labels, piece.rows.labels);
  }
  if (bad_rows > max_bad_rows) {
    return base::InvalidArgument("{} ({} rows cannot be parsed, spec.data.maxBadRows is {})", first_bad, bad_rows,
                                 max_bad_rows);
  }
  if (samples == 0) return base::InvalidArgument("{}: the file has no rows", path);
  if (samples > std::numeric_limits<int>::max())
    return base::InvalidArgument("{}: the file has more than 2^31 - 1 rows", path);
  rows.samples = static_cast<int>(samples);
  return absl::OkStatus();
}

// The classes that occur in any piece, sorted. Numbers the labels of the pieces by them.
absl::StatusOr<std::vector<std::string>> NumberClasses(std::vector<Piece>& pieces, const std::string& path) {
  std::set<std::string> names;
  for (const Piece& piece : pieces) names.insert(piece.classes.begin(), piece.classes.end());
  if (names.size() > model::kMostClasses) {
    return base::InvalidArgument(
        "{}: the label has more than {} different values; for a number set spec.model.task: regression", path,
        model::kMostClasses);
  }
  for (Piece& piece : pieces) {
    std::vector<float> numbers;
    for (const std::string& name : piece.classes) {
      numbers.push_back(static_cast<float>(std::distance(names.begin(), names.find(name))));
    }
    for (float& label : piece.rows.labels) label = numbers[static_cast<size_t>(label)];
  }
  return std::vector<std::string>(names.begin(), names.end());
}

Transform Fit(const Batch& rows, const model::SchemaSpec& schema, LabelTransform label) {
  Transform transform;
  transform.label = schema.task == model::Task::kRegression ? FitLabel(rows.labels) : std::move(label);
  const size_t width = static_cast<size_t>(rows.shape.numerics);
  std::vector<float> column(static_cast<size_t>(rows.samples));
  for (size_t c = 0; c < width; ++c) {
    for (size_t i = 0; i < column.size(); ++i) column[i] = rows.numerics[i * width + c];
    transform.columns.push_back(FitNumeric(column, schema.numeric_buckets));
  }
  return transform;
}

// Turns `joined` into an error that names the values of the label column when these are why the rows cannot be used.
absl::Status CheckClasses(const absl::Status& joined, const Batch& rows, const SourceFile& file,
                          const model::SchemaSpec& schema, std::stop_token stop) {
  const auto occurs = [&](float label) { return std::ranges::find(rows.labels, label) != rows.labels.end(); };
  if (joined.ok() && occurs(0) && occurs(1)) return joined;
  LabelValues values(schema, file.delimiter);
  MEDLEY_RETURN_IF_ERROR(values.AddFiles(file, LabelValues::Until::kEnd, std::move(stop)));
  if (joined.ok() || !values.HasEitherClass()) MEDLEY_RETURN_IF_ERROR(values.Check(file.path));
  MEDLEY_RETURN_IF_ERROR(joined);
  return base::InvalidArgument("{}: all rows of one class are among those that cannot be parsed; the labels are {}",
                               file.path, values.Describe());
}

// Checks that the labels of the training data differ, for tasks other than kBinary.
absl::Status CheckDiffer(const Batch& rows, const std::string& path, const model::SchemaSpec& schema,
                         const std::vector<std::string>& classes) {
  const auto labels = static_cast<size_t>(rows.shape.labels);
  for (size_t i = labels; i < rows.labels.size(); ++i) {
    if (rows.labels[i] != rows.labels[i % labels]) return absl::OkStatus();
  }
  switch (schema.task) {
    case model::Task::kRegression:
      return base::InvalidArgument("{}: the label in column {} is {} in every row: nothing can be learnt", path,
                                   LabelColumnText(schema), rows.labels.front());
    case model::Task::kMultiClass:
      return base::InvalidArgument(
          "{}: the label in column {} is '{}' in every row. Rows of several classes are needed", path,
          LabelColumnText(schema), base::Printable(classes[static_cast<size_t>(rows.labels.front())]));
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
  MEDLEY_ASSIGN_OR_RETURN(const std::vector<std::string> paths, FindFiles(at.path));
  LabelTransform label;
  label.classes = transform != nullptr ? transform->label.classes : spec.schema.label_classes;
  std::vector<Piece> pieces;
  std::string header;
  for (size_t i = 0; i < paths.size(); ++i) {
    MEDLEY_RETURN_IF_ERROR(ParseFile(paths, i, at.delimiter, spec.schema, label.classes, options, header, pieces));
    if (options.stop.stop_requested()) return base::Cancelled("reading {} was stopped", paths[i]);
  }
  if (spec.schema.task == model::Task::kMultiClass && label.classes.empty()) {
    MEDLEY_ASSIGN_OR_RETURN(label.classes, NumberClasses(pieces, at.path));
  }

  std::shared_ptr<Dataset> data(new Dataset());
  data->rows_.shape = ShapeOf(spec.schema);
  const absl::Status joined =
      Join(pieces, paths, at.path, spec.schema.header ? 1 : 0, spec.max_bad_rows, data->rows_, data->bad_rows_);
  if (spec.schema.task == model::Task::kBinary) {
    MEDLEY_RETURN_IF_ERROR(CheckClasses(joined, data->rows_, at, spec.schema, options.stop));
  }
  MEDLEY_RETURN_IF_ERROR(joined);
  if (transform == nullptr && spec.schema.task != model::Task::kOwnLoss) {
    MEDLEY_RETURN_IF_ERROR(CheckDiffer(data->rows_, at.path, spec.schema, label.classes));
  }
  data->transform_ = transform != nullptr ? *transform : Fit(data->rows_, spec.schema, std::move(label));
  if (data->transform_.columns.size() != spec.schema.numeric.size()) {
    return base::InvalidArgument("{}: the transform has {} numeric columns, the schema has {}", at.path,
                                 data->transform_.columns.size(), spec.schema.numeric.size());
  }
  data->digest_ = DigestOf(data->rows_, data->transform_.label.classes);
  FeatureEncoder(data->transform_, spec.schema, options.embedding_rows).Encode(data->rows_);
  return data;
}

absl::StatusOr<std::shared_ptr<const Dataset>> Dataset::LoadFromArrays(const model::SourceSpec& source,
                                                                       const model::DataSpec& spec,
                                                                       const Transform* transform,
                                                                       const LoadOptions& options) {
  ArrayOptions arrays{.root = options.root, .stop = options.stop, .on_piece = options.on_piece};
  arrays.test = transform != nullptr;
  if (transform != nullptr) arrays.classes = transform->label.classes;
  MEDLEY_ASSIGN_OR_RETURN(ArraySamples samples, LoadArrays(source, spec.schema, arrays));
  std::shared_ptr<Dataset> data(new Dataset());
  data->rows_ = std::move(samples.rows);
  data->transform_.label.classes = std::move(samples.classes);
  data->digest_ = DigestOf(data->rows_, data->transform_.label.classes);
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
  for (size_t i = 0; i < indices.size(); ++i) {
    const size_t row = static_cast<size_t>(indices[i]);
    std::copy_n(rows_.ids.data() + row * fields, fields, batch.ids.data() + i * fields);
    std::copy_n(rows_.numerics.data() + row * width, width, batch.numerics.data() + i * width);
    std::copy_n(rows_.labels.data() + row * labels, labels, batch.labels.data() + i * labels);
  }
}

}  // namespace medley::worker
