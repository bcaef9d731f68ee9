#include "common/model/read_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/model/data_format.h"
#include "common/model/read_job_fields.h"

namespace medley::model {
namespace {

using document::Reader;

// A column is a number, or a name of the header: `number` is -1 then.
void ReadColumnValue(const Reader& reader, std::string_view field, const nlohmann::json& value, int& number,
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

// "pixel0..pixel783" or "1..784".
struct ColumnRange {
  std::string prefix;
  int64_t first = 0;
  int64_t last = 0;
  size_t digits = 0;  // least number of them: x001..x100 is padded with zeros
};

std::optional<ColumnRange> RangeOf(std::string_view text) {
  const size_t dots = text.find("..");
  if (dots == std::string_view::npos) return std::nullopt;
  const std::string_view first = text.substr(0, dots), last = text.substr(dots + 2);
  const auto digits_of = [](std::string_view name) {
    size_t digits = 0;
    while (digits < name.size() && name[name.size() - 1 - digits] >= '0' && name[name.size() - 1 - digits] <= '9') {
      ++digits;
    }
    return digits;
  };
  const size_t digits = digits_of(first), last_digits = digits_of(last);
  ColumnRange range{.prefix = std::string(first.substr(0, first.size() - digits))};
  if (digits == 0 || digits > 9 || last_digits == 0 || last_digits > 9 ||
      last.substr(0, last.size() - last_digits) != range.prefix) {
    return std::nullopt;
  }
  std::from_chars(first.data() + range.prefix.size(), first.data() + first.size(), range.first);
  std::from_chars(last.data() + range.prefix.size(), last.data() + last.size(), range.last);
  const bool padded = digits > 1 && first[range.prefix.size()] == '0';
  if (padded && digits != last_digits) return std::nullopt;
  range.digits = padded ? digits : 1;
  return range;
}

void ReadColumns(const Reader& reader, std::string_view field, std::vector<int>& numbers,
                 std::vector<std::string>& names) {
  if (!reader.Has(field)) return;
  const nlohmann::json list = reader.Raw(field);
  if (!list.is_array()) return reader.Fail(field, "must be a list of columns");
  numbers.clear();
  names.clear();
  for (size_t i = 0; i < list.size(); ++i) {
    const auto range = list[i].is_string() ? RangeOf(list[i].get_ref<const std::string&>()) : std::nullopt;
    if (!range) {
      ReadColumnValue(reader, fmt::format("{}[{}]", field, i), list[i], numbers.emplace_back(-1), names.emplace_back());
      continue;
    }
    if (range->last < range->first || range->last - range->first >= static_cast<int64_t>(kMostColumns)) {
      return reader.Fail(fmt::format("{}[{}]", field, i),
                         fmt::format("is a range that must have from 1 to {} columns", kMostColumns));
    }
    for (int64_t at = range->first; at <= range->last; ++at) {
      numbers.push_back(range->prefix.empty() ? static_cast<int>(at) : -1);
      names.push_back(range->prefix.empty() ? "" : fmt::format("{}{:0{}}", range->prefix, at, range->digits));
    }
    if (numbers.size() > kMostColumns) {
      return reader.Fail(field, fmt::format("has more than {} columns", kMostColumns));
    }
  }
  const auto is_empty = [](const std::string& name) { return name.empty(); };
  if (std::ranges::all_of(names, is_empty)) names.clear();
}

void ReadColumn(const Reader& reader, std::string_view field, int& number, std::string& name) {
  if (reader.Has(field)) ReadColumnValue(reader, field, reader.Raw(field), number, name);
}

// Appends the columns of an input to those of a list of the schema.
void Append(const InputSpec& input, std::vector<int>& numbers, std::vector<std::string>& names) {
  if (!input.column_names.empty()) names.resize(numbers.size());
  numbers.insert(numbers.end(), input.columns.begin(), input.columns.end());
  names.insert(names.end(), input.column_names.begin(), input.column_names.end());
  if (!names.empty()) names.resize(numbers.size());
}

// A date is as many numeric columns as it has parts.
void AddDates(const Reader& reader, SchemaSpec& schema) {
  std::vector<int> numbers;
  std::vector<std::string> names;
  ReadColumns(reader, "dates", numbers, names);
  if (numbers.empty()) return;
  schema.parts.resize(schema.numeric.size());
  if (!names.empty()) schema.names.numeric.resize(schema.numeric.size());
  for (size_t i = 0; i < numbers.size(); ++i) {
    for (const ColumnPart part : kDateParts) {
      schema.numeric.push_back(numbers[i]);
      schema.parts.push_back(part);
      if (!names.empty()) schema.names.numeric.push_back(names[i]);
    }
  }
  if (!schema.names.numeric.empty()) schema.names.numeric.resize(schema.numeric.size());
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

#include "common/model/data_fields.inc"  // Read* of the structs of data_fields.h, made by cmake/job_fields.py

}  // namespace

bool SourceSpec::arrays() const { return HoldsArrays(format); }

void ReadData(const document::Reader& reader, DataSpec& data) {
  ReadDataSpec(reader, data);
  AddDates(reader.Child("schema"), data.schema);
  AddColumns(data.schema);
}

}  // namespace medley::model
