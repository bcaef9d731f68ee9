#include "worker/data/columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "common/base/closest.h"
#include "common/base/status.h"
#include "common/base/utf8.h"
#include "worker/data/csv.h"

namespace medley::worker {
namespace {

class Header {
 public:
  Header(const std::vector<std::string>& names, const std::string& path) : names_(names), path_(path) {}

  bool Has(const std::string& name) const { return std::ranges::find(names_, name) != names_.end(); }

  // Sets the number of a named column.
  absl::Status Find(const std::string& name, int& column) const {
    if (name.empty()) return absl::OkStatus();
    const auto found = std::ranges::find(names_, name);
    if (found == names_.end()) {
      return base::InvalidArgument("{}: the header has no column '{}'{}", path_, name, base::DidYouMean(name, names_));
    }
    if (std::find(found + 1, names_.end(), name) != names_.end()) {
      return base::InvalidArgument("{}: the header has several columns '{}': give the number of the one that you mean",
                                   path_, name);
    }
    column = static_cast<int>(found - names_.begin());
    return absl::OkStatus();
  }

  absl::Status Find(const std::vector<std::string>& names, std::vector<int>& columns) const {
    for (size_t i = 0; i < names.size() && i < columns.size(); ++i) MEDLEY_RETURN_IF_ERROR(Find(names[i], columns[i]));
    return absl::OkStatus();
  }

 private:
  const std::vector<std::string>& names_;
  const std::string& path_;
};

// A column that is both named and numbered, or named and used for two purposes, would leak the label into the features.
absl::Status CheckOnce(const model::SchemaSpec& schema, const std::string& path) {
  std::vector<int> columns = schema.categorical;
  for (size_t i = 0; i < schema.numeric.size(); ++i) {
    // A date is in the list once for each of its parts, the time first.
    if (PartOf(schema, i) <= model::ColumnPart::kTime) columns.push_back(schema.numeric[i]);
  }
  columns.insert(columns.end(), schema.label_columns.begin(), schema.label_columns.end());
  if (schema.label_column >= 0) columns.push_back(schema.label_column);
  if (schema.weight_column >= 0) columns.push_back(schema.weight_column);
  std::ranges::sort(columns);
  const auto twice = std::ranges::adjacent_find(columns);
  if (twice == columns.end()) return absl::OkStatus();
  return base::InvalidArgument("{}: column {} is used twice in spec.data.schema, by its name and by its number", path,
                               *twice);
}

}  // namespace

absl::StatusOr<std::vector<std::string>> HeaderNames(std::string_view header, char delimiter, const std::string& path) {
  CsvFields fields;
  if (const absl::Status split = SplitCsv(header, delimiter, fields); !split.ok()) {
    return base::Annotate(split, path + ": the header");
  }
  return std::vector<std::string>(fields.values.begin(), fields.values.end());
}

absl::StatusOr<model::SchemaSpec> FindColumns(const model::SchemaSpec& schema, const std::vector<std::string>& header,
                                              const std::string& path, bool label_may_lack) {
  if (schema.names.empty()) return schema;
  const Header names(header, path);
  model::SchemaSpec found = schema;
  const bool lacks = label_may_lack && !schema.names.label.empty() && !names.Has(schema.names.label);
  if (!lacks) MEDLEY_RETURN_IF_ERROR(names.Find(schema.names.label, found.label_column));
  const std::string& weight = schema.names.weight;
  if (!label_may_lack || names.Has(weight)) MEDLEY_RETURN_IF_ERROR(names.Find(weight, found.weight_column));
  if (!label_may_lack) MEDLEY_RETURN_IF_ERROR(names.Find(schema.names.labels, found.label_columns));
  MEDLEY_RETURN_IF_ERROR(names.Find(schema.names.categorical, found.categorical));
  MEDLEY_RETURN_IF_ERROR(names.Find(schema.names.numeric, found.numeric));
  MEDLEY_RETURN_IF_ERROR(CheckOnce(found, path));
  return found;
}

absl::Status CompareHeaders(const model::SchemaSpec& schema, const std::vector<std::string>& expected,
                            const std::string& of, const std::vector<std::string>& header, const std::string& path,
                            bool labels) {
  const auto compare = [&](int column) -> absl::Status {
    const auto at = static_cast<size_t>(column);
    if (column < 0 || at >= expected.size() || (at < header.size() && header[at] == expected[at])) {
      return absl::OkStatus();
    }
    const std::string has = at < header.size() ? fmt::format("column {} is '{}'", column, base::Printable(header[at]))
                                               : fmt::format("there is no column {}", column);
    return base::InvalidArgument(
        "{}: the header differs from that of {}: {}, which is '{}' there: put the columns into the same order, or "
        "train "
        "with the names of columns instead of numbers in spec.data.schema",
        path, of, has, base::Printable(expected[at]));
  };
  if (labels) {
    MEDLEY_RETURN_IF_ERROR(compare(schema.label_column));
    MEDLEY_RETURN_IF_ERROR(compare(schema.weight_column));
    for (const int column : schema.label_columns) MEDLEY_RETURN_IF_ERROR(compare(column));
  }
  for (const int column : schema.categorical) MEDLEY_RETURN_IF_ERROR(compare(column));
  for (const int column : schema.numeric) MEDLEY_RETURN_IF_ERROR(compare(column));
  return absl::OkStatus();
}

std::string LabelColumnText(const model::SchemaSpec& schema) {
  return schema.names.label.empty() ? std::to_string(schema.label_column) : fmt::format("'{}'", schema.names.label);
}

std::string WeightColumnText(const model::SchemaSpec& schema) {
  return schema.names.weight.empty() ? std::to_string(schema.weight_column) : fmt::format("'{}'", schema.names.weight);
}

}  // namespace medley::worker
