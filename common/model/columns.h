// What a column of numbers holds, and columns that a manifest names as the file's header does.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace medley::model {

// What is read from a column of numbers: the number, or a part of a date and time. kTime: seconds since 1970 in UTC.
enum class ColumnPart { kValue, kTime, kYear, kMonth, kWeekday, kHour };
inline constexpr ColumnPart kDateParts[] = {ColumnPart::kTime, ColumnPart::kYear, ColumnPart::kMonth,
                                            ColumnPart::kWeekday, ColumnPart::kHour};

// As in an export: "time". Empty for kValue.
inline const char* PartName(ColumnPart part) {
  constexpr const char* kNames[] = {"", "time", "year", "month", "weekday", "hour"};
  return kNames[static_cast<size_t>(part)];
}

// The names of columns of a SchemaSpec. Lists are empty, or have an entry for each column of the schema's list: "" for
// one that is given by its number.
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

}  // namespace medley::model
