#include "worker/data/columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "common/base/closest.h"
#include "common/base/status.h"
#include "worker/data/csv.h"

namespace medley::worker {
namespace {

class Header {
 public:
  Header(std::vector<std::string> names, const std::string& path) : names_(std::move(names)), path_(path) {}

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
    for (size_t i = 0; i < names.size(); ++i) MEDLEY_RETURN_IF_ERROR(Find(names[i], columns[i]));
    return absl::OkStatus();
  }

 private:
  const std::vector<std::string> names_;
  const std::string& path_;
};

// A column that is both named and numbered, or named and used for two purposes, would leak the label into the features.
absl::Status CheckOnce(const model::SchemaSpec& schema, const std::string& path) {
  std::vector<int> columns = schema.categorical;
  columns.insert(columns.end(), schema.numeric.begin(), schema.numeric.end());
  if (schema.label_column >= 0) columns.push_back(schema.label_column);
  std::ranges::sort(columns);
  const auto twice = std::ranges::adjacent_find(columns);
  if (twice == columns.end()) return absl::OkStatus();
  return base::InvalidArgument("{}: column {} is used twice in spec.data.schema, by its name and by its number", path,
                               *twice);
}

}  // namespace

absl::StatusOr<model::SchemaSpec> FindColumns(const model::SchemaSpec& schema, std::string_view header, char delimiter,
                                              const std::string& path, bool label_may_lack) {
  if (schema.names.empty()) return schema;
  CsvFields fields;
  if (const absl::Status split = SplitCsv(header, delimiter, fields); !split.ok()) {
    return base::Annotate(split, path + ": the header");
  }
  const Header names({fields.values.begin(), fields.values.end()}, path);
  model::SchemaSpec found = schema;
  const bool lacks = label_may_lack && !schema.names.label.empty() && !names.Has(schema.names.label);
  if (!lacks) MEDLEY_RETURN_IF_ERROR(names.Find(schema.names.label, found.label_column));
  MEDLEY_RETURN_IF_ERROR(names.Find(schema.names.categorical, found.categorical));
  MEDLEY_RETURN_IF_ERROR(names.Find(schema.names.numeric, found.numeric));
  MEDLEY_RETURN_IF_ERROR(CheckOnce(found, path));
  return found;
}

std::string LabelColumnText(const model::SchemaSpec& schema) {
  return schema.names.label.empty() ? std::to_string(schema.label_column) : fmt::format("'{}'", schema.names.label);
}

}  // namespace medley::worker
