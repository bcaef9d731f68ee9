#include "worker/columns/column_text.h"

#include <array>
#include <utility>

#include "common/base/status.h"
#include "common/base/utf8.h"
#include "worker/columns/column_value.h"

namespace medley::worker {
void AppendField(std::string_view value, char delimiter, std::string& text) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\r'; };
  const bool quotes = !value.empty() && (is_blank(value.front()) || is_blank(value.back()) ||
                                         value.find_first_of(std::array{delimiter, '"', '\n', '\r'}.data(), 0, 4) !=
                                             std::string_view::npos);
  if (!quotes) {
    text += value;
    return;
  }
  text += '"';
  for (const char c : value) {
    if (c == '"') text += '"';
    text += c;
  }
  text += '"';
}

absl::Status CheckColumns(const ColumnFile& file, const std::string& name) {
  for (const ColumnInfo& column : file.columns()) {
    if (column.readable) continue;
    return base::InvalidArgument(
        "{}: the column '{}' has the type {}, but tables have numbers, texts, truth values, dates and times: write the "
        "file without it, or with a column for each of its parts",
        name, base::Printable(column.name), base::Printable(column.type));
  }
  if (file.columns().empty()) return base::InvalidArgument("{}: the file has no columns", name);
  return absl::OkStatus();
}

ColumnText::ColumnText(std::unique_ptr<ColumnFile> file, std::string name, char delimiter, bool header)
    : file_(std::move(file)), name_(std::move(name)), delimiter_(delimiter), header_(header) {}

absl::Status ColumnText::Append(std::string& text) {
  const std::vector<ColumnInfo>& columns = file_->columns();
  if (!std::exchange(began_, true)) {
    std::vector<int> all;
    for (size_t i = 0; i < columns.size(); ++i) all.push_back(static_cast<int>(i));
    if (const std::string error = file_->Begin(all); !error.empty()) {
      return base::InvalidArgument("{}: {}", name_, error);
    }
  }
  if (std::exchange(header_, false)) {
    for (size_t i = 0; i < columns.size(); ++i) {
      if (i > 0) text += delimiter_;
      AppendField(columns[i].name, delimiter_, text);
    }
    if (columns.size() == 1 && columns[0].name.empty()) text += "\"\"";
    text += '\n';
    return absl::OkStatus();
  }
  if (const std::string error = file_->Next(batch_); !error.empty()) {
    return base::InvalidArgument("{}: {}", name_, error);
  }
  std::string value;
  for (int64_t row = 0; row < batch_.rows; ++row) {
    for (size_t i = 0; i < batch_.columns.size(); ++i) {
      if (i > 0) text += delimiter_;
      value.clear();
      AppendValue(batch_.columns[i], row, value);
      AppendField(value, delimiter_, text);
    }
    if (batch_.columns.size() == 1 && value.empty()) text += "\"\"";  // else the line would be blank
    text += '\n';
  }
  return absl::OkStatus();
}

}  // namespace medley::worker
