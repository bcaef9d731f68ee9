#include "worker/data/label_values.h"

#include <absl/strings/str_join.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/closest.h"
#include "common/base/status.h"
#include "common/base/utf8.h"
#include "worker/data/array_dataset.h"
#include "worker/data/columns.h"
#include "worker/data/libsvm.h"
#include "worker/data/record.h"
#include "worker/data/row_parser.h"
#include "worker/data/source.h"
#include "worker/data/text_file.h"

namespace medley::worker {
namespace {

constexpr size_t kMostValues = 1000;  // of which rows are counted; further ones are "other values"
constexpr size_t kMostNamed = 8;
constexpr size_t kLongestValue = 40;

std::string Quoted(std::string_view value) { return fmt::format("\"{}\"", base::Printable(value, kLongestValue)); }

absl::StatusOr<model::SchemaSpec> ReadHeader(const model::SchemaSpec& schema, std::string_view header, char delimiter,
                                             const std::string& path) {
  MEDLEY_ASSIGN_OR_RETURN(const std::vector<std::string> names, HeaderNames(header, delimiter, path));
  return FindColumns(schema, names, path);
}

std::string Rows(int64_t rows) { return fmt::format("({} {})", rows, rows == 1 ? "row" : "rows"); }

}  // namespace

void LabelValues::Add(std::string_view row, int label_column) {
  const auto column = static_cast<size_t>(label_column);
  if (IsBlankRow(row, delimiter_) || !SplitRow(row, delimiter_, column + 1, fields_).ok()) return;
  if (column >= fields_.values.size()) return;
  const std::string_view label = LabelText(fields_.values[column]);
  if (label.empty()) return;
  if (const std::optional<bool> one = IsOne(label, schema_.label_positive)) ++(*one ? positives_ : negatives_);
  const auto it = rows_.find(label);
  if (it != rows_.end()) {
    ++it->second;
  } else if (rows_.size() < kMostValues) {
    rows_.emplace(label, 1);
  } else {
    ++more_rows_;
  }
}

std::string LabelValues::Describe() const {
  std::vector<std::pair<std::string, int64_t>> values(rows_.begin(), rows_.end());
  std::ranges::stable_sort(values, std::ranges::greater(), &std::pair<std::string, int64_t>::second);
  std::vector<std::string> parts;
  int64_t other_rows = more_rows_;
  for (size_t i = 0; i < values.size(); ++i) {
    if (i < kMostNamed) {
      parts.push_back(fmt::format("{} {}", Quoted(values[i].first), Rows(values[i].second)));
    } else {
      other_rows += values[i].second;
    }
  }
  std::string text = absl::StrJoin(parts, ", ");
  if (other_rows > 0) text += fmt::format(" and other values {}", Rows(other_rows));
  return text;
}

absl::Status LabelValues::Check(std::string_view path) const {
  if (rows_.empty() || HasBothClasses()) return absl::OkStatus();
  const std::string where = fmt::format("{}: the label in column {}", path, LabelColumnText(schema_));
  if (schema_.label_positive.empty()) {
    const char* problem = positives_ > 0   ? "is 1 in every row that can be used"
                          : negatives_ > 0 ? "is 0 in every row that can be used"
                                           : "is neither 0 nor 1 in any row";
    return base::InvalidArgument(
        "{} {}: it holds {}. Rows of both classes are needed; for text labels name the one that counts as 1 in "
        "spec.data.schema.label.positive",
        where, problem, Describe());
  }
  if (positives_ > 0) {
    return base::InvalidArgument(
        "{} is always the value of spec.data.schema.label.positive: it holds {}. Rows of both classes are needed",
        where, Describe());
  }
  std::vector<std::string> values;
  for (const auto& [value, rows] : rows_) values.push_back(value);
  const std::string hint = base::DidYouMean(schema_.label_positive, values);
  return base::InvalidArgument(
      "{} is never {}, the value of spec.data.schema.label.positive: it holds {}{} Rows of both classes are needed",
      where, Quoted(schema_.label_positive), Describe(), hint.empty() ? "." : hint);
}

absl::Status LabelValues::AddFiles(const SourceFile& file, Until until, std::stop_token stop) {
  const auto enough = [&] { return until == Until::kBothClasses && HasBothClasses(); };
  MEDLEY_ASSIGN_OR_RETURN(const std::vector<std::string> paths, FindFiles(file.path));
  for (const std::string& path : paths) {
    if (enough()) return absl::OkStatus();
    bool empty = true;
    absl::StatusOr<model::SchemaSpec> found = schema_;
    MEDLEY_RETURN_IF_ERROR(ForEachRecord(path, delimiter_, [&](std::string_view row, int64_t line) {
      empty = false;
      if (line == 1 && schema_.header) {
        found = ReadHeader(schema_, row, delimiter_, path);
      } else {
        Add(row, found->label_column);
      }
      return found.ok() && !enough() && !stop.stop_requested();
    }));
    if (empty && schema_.header) found = ReadHeader(schema_, "", delimiter_, path);
    MEDLEY_RETURN_IF_ERROR(found.status());
    if (stop.stop_requested()) return base::Cancelled("reading {} was stopped", path);
  }
  return absl::OkStatus();
}

namespace {

// OK when some row can be read; otherwise why the first one cannot.
absl::Status FindReadableRow(const SourceFile& file, const model::SchemaSpec& schema,
                             const std::vector<std::string>& classes, const std::stop_token& stop) {
  MEDLEY_ASSIGN_OR_RETURN(const std::vector<std::string> paths, FindFiles(file.path));
  absl::Status first_error;
  for (const std::string& path : paths) {
    absl::StatusOr<model::SchemaSpec> found = schema;
    std::optional<RowParser> parser;
    ParsedRows rows;
    MEDLEY_RETURN_IF_ERROR(ForEachRecord(path, file.delimiter, [&](std::string_view row, int64_t line) {
      if (line == 1 && schema.header) {
        found = ReadHeader(schema, row, file.delimiter, path);
        return found.ok();
      }
      if (!IsBlankRow(row, file.delimiter)) {
        if (!parser) parser.emplace(*found, file.delimiter, 1, classes);
        const absl::Status read = parser->Append(row, rows);
        if (first_error.ok()) first_error = base::Annotate(read, fmt::format("{}:{}", path, line));
      }
      return rows.samples == 0 && !stop.stop_requested();
    }));
    MEDLEY_RETURN_IF_ERROR(found.status());
    if (rows.samples > 0) return absl::OkStatus();
    if (stop.stop_requested()) return base::Cancelled("reading {} was stopped", path);
  }
  return first_error;
}

// Compares the headers of all files with that of the training data.
absl::Status CheckHeaders(const SourceFile& file, const model::SchemaSpec& schema,
                          const std::vector<std::string>& expected) {
  MEDLEY_ASSIGN_OR_RETURN(const std::vector<std::string> paths, FindFiles(file.path));
  for (const std::string& path : paths) {
    absl::Status status;
    MEDLEY_RETURN_IF_ERROR(ForEachRecord(path, file.delimiter, [&](std::string_view header, int64_t) {
      const absl::StatusOr<std::vector<std::string>> names = HeaderNames(header, file.delimiter, path);
      status = names.ok() ? CompareHeaders(schema, expected, "the training data", *names, path) : names.status();
      return false;
    }));
    MEDLEY_RETURN_IF_ERROR(status);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckLabels(const model::SourceSpec& source, const model::DataSpec& spec,
                         const std::vector<std::string>& classes, const std::string& root, std::stop_token stop,
                         const std::vector<std::string>& header) {
  if (source.arrays()) {
    ArrayOptions options{.root = root, .stop = std::move(stop), .classes = classes};
    options.test = true;
    return CheckArrays(source, spec.schema, options);
  }
  MEDLEY_ASSIGN_OR_RETURN(const SourceFile file, FileOf(source, root));
  if (spec.schema.header && !header.empty()) MEDLEY_RETURN_IF_ERROR(CheckHeaders(file, spec.schema, header));
  if (spec.schema.task != model::Task::kBinary) return FindReadableRow(file, spec.schema, classes, stop);
  LabelValues values(spec.schema, file.delimiter);
  MEDLEY_RETURN_IF_ERROR(values.AddFiles(file, LabelValues::Until::kBothClasses, std::move(stop)));
  return values.Check(file.path);
}

}  // namespace medley::worker
