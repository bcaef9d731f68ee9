#include "common/model/read_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

namespace medley::model {
namespace {

using document::Reader;

void ReadSource(const Reader& reader, SourceSpec& source) {
  reader.Read("uri", source.uri);
  reader.Read("format", source.format);
  reader.Read("labels", source.labels);
  source.files = reader.StringMap("files");
}

// A column is a number, or a name of the header: `number` is -1 then.
void ReadColumn(const Reader& reader, std::string_view field, const nlohmann::json& value, int& number,
                std::string& name) {
  constexpr int64_t kMost = std::numeric_limits<int>::max();
  if (value.is_number_integer() && value.get<int64_t>() >= -kMost && value.get<int64_t>() <= kMost) {
    number = value.get<int>();
  } else if (value.is_string() && !value.get_ref<const std::string&>().empty()) {
    number = -1;
    name = value.get<std::string>();
  } else {
    reader.Fail(field, "must be the number or the name of a column, is " +
                           value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }
}

void ReadColumns(const Reader& reader, std::string_view field, std::vector<int>& numbers,
                 std::vector<std::string>& names) {
  if (!reader.Has(field)) return;
  const nlohmann::json list = reader.Raw(field);
  if (!list.is_array()) return reader.Fail(field, "must be a list of columns");
  numbers.assign(list.size(), -1);
  names.assign(list.size(), "");
  for (size_t i = 0; i < list.size(); ++i) {
    ReadColumn(reader, fmt::format("{}[{}]", field, i), list[i], numbers[i], names[i]);
  }
  const auto is_empty = [](const std::string& name) { return name.empty(); };
  if (std::ranges::all_of(names, is_empty)) names.clear();
}

void ReadInput(const Reader& reader, InputSpec& input) {
  reader.Read("name", input.name);
  reader.Read("type", input.type);
  reader.Read("shape", input.shape);
  reader.Read("storage", input.storage);
  reader.Read("scale", input.scale);
  reader.Read("mean", input.mean);
  reader.Read("std", input.deviation);
  ReadColumns(reader, "columns", input.columns, input.column_names);
}

// Appends the columns of an input to those of a list of the schema.
void Append(const InputSpec& input, std::vector<int>& numbers, std::vector<std::string>& names) {
  if (!input.column_names.empty()) names.resize(numbers.size());
  numbers.insert(numbers.end(), input.columns.begin(), input.columns.end());
  names.insert(names.end(), input.column_names.begin(), input.column_names.end());
  if (!names.empty()) names.resize(numbers.size());
}

// The columns of the schema as those of the inputs one after the other.
void AddColumns(SchemaSpec& schema) {
  for (InputSpec& input : schema.inputs) {
    if (input.columns.empty()) continue;
    if (input.shape.empty()) input.shape = {static_cast<int64_t>(input.columns.size())};
    if (input.type == "float32") {
      Append(input, schema.numeric, schema.names.numeric);
    } else {
      Append(input, schema.categorical, schema.names.categorical);
      schema.whole_numbers.resize(schema.categorical.size(), input.type == "int64");
    }
  }
}

}  // namespace

void ReadData(const document::Reader& reader, DataSpec& data) {
  ReadSource(reader.Child("train"), data.train);
  if (reader.Has("test")) ReadSource(reader.Child("test"), data.test.emplace());
  const Reader schema = reader.Child("schema");
  const Reader label = schema.Child("label");
  if (label.Has("column")) {
    ReadColumn(label, "column", label.Raw("column"), data.schema.label_column, data.schema.names.label);
  }
  label.Read("columns", data.schema.label_columns);
  label.Read("positive", data.schema.label_positive);
  data.schema.label_classes = label.Strings("classes");
  ReadColumns(schema, "categorical", data.schema.categorical, data.schema.names.categorical);
  ReadColumns(schema, "numeric", data.schema.numeric, data.schema.names.numeric);
  schema.Read("numericBuckets", data.schema.numeric_buckets);
  schema.Read("header", data.schema.header);
  label.Read("count", data.schema.label_count);
  label.Read("storage", data.schema.label_storage);
  reader.Read("maxBadRows", data.max_bad_rows);
  for (const Reader& input : reader.List("inputs")) ReadInput(input, data.schema.inputs.emplace_back());
  AddColumns(data.schema);
}

}  // namespace medley::model
