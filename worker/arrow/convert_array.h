// Arrays of Arrow as the values of worker/columns. Not thread-safe.
#pragma once

#include <arrow/array.h>
#include <arrow/result.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "worker/columns/column_file.h"

namespace medley::worker {

// Whether arrays of the type can be converted. For an extension type: those of its storage.
bool IsReadable(const arrow::DataType& type);

// Converts the arrays of one column, one after the other.
class ArrayConverter {
 public:
  // `array` has been validated, but not in full: what it points to is checked here. The values are valid until the next
  // call, and as long as `array`. Errors: Invalid for offsets or codes that point outside of it.
  arrow::Result<ColumnValues> Convert(const arrow::Array& array);

 private:
  arrow::Status ConvertDictionary(const arrow::Array& array, ColumnValues& values);
  arrow::Status ConvertReals(const arrow::Array& array, ColumnValues& values);
  arrow::Status ConvertWholes(const arrow::Array& array, ColumnValues& values);
  // The texts of the array into texts_; those that must be made are kept in made_.
  arrow::Status ConvertTexts(const arrow::Array& array);
  void MarkPresent(const arrow::Array& array, ColumnValues& values);

  std::vector<double> reals_;
  std::vector<int64_t> wholes_;
  std::vector<uint8_t> present_;
  std::vector<std::string_view> texts_;
  std::vector<int32_t> codes_;
  std::vector<std::string> made_;
  std::shared_ptr<arrow::ArrayData> kept_dictionary_;  // of which texts_ are
};

}  // namespace medley::worker
