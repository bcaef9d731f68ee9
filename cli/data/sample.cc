#include "cli/data/sample.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <utility>

#include "common/base/status.h"
#include "worker/data/csv.h"
#include "worker/data/libsvm.h"
#include "worker/data/record.h"
#include "worker/data/source.h"
#include "worker/data/text_encoding.h"
#include "worker/data/text_file.h"

namespace medley::cli {
namespace {

constexpr int kRowsForDelimiter = 100;
constexpr size_t kMostColumns = 65536;
constexpr size_t kMostFields = size_t{1} << 23;  // of all rows, because a short line of libsvm can have many columns

// The number of fields of most of the first rows, and how many rows have it.
std::pair<size_t, size_t> MostFields(std::string_view text, char delimiter) {
  std::map<size_t, size_t> counts;
  worker::CsvFields fields;
  for (int rows = 0; rows < kRowsForDelimiter;) {
    const auto record = worker::TakeRecord(text, delimiter, true);
    if (!record) break;
    if (worker::Trim(record->text).empty()) continue;
    ++rows;
    if (worker::SplitCsv(record->text, delimiter, fields).ok()) ++counts[fields.values.size()];
  }
  std::pair<size_t, size_t> most = {1, 0};
  for (const auto& [count, occurs] : counts) {
    if (occurs >= most.second) most = {count, occurs};
  }
  return most;
}

// The character that divides most rows into the same number of fields. A comma when none does, for a table of one
// column.
char DelimiterOf(std::string_view text, bool whole) {
  if (worker::LooksLikeLibsvm(text, whole)) return worker::kLibsvmDelimiter;
  char best = ',';
  std::pair<size_t, size_t> most = {0, 0};  // rows, fields
  for (const char delimiter : std::array{',', '\t', ';', '|'}) {
    const auto [fields, occurs] = MostFields(text, delimiter);
    if (fields > 1 && std::pair(occurs, fields) > most) {
      most = {occurs, fields};
      best = delimiter;
    }
  }
  return best;
}

// The columns of a libsvm file up to the largest index of its first rows.
size_t LibsvmColumns(std::string_view text, bool whole, size_t rows) {
  size_t columns = 1;
  worker::CsvFields fields;
  for (; rows > 0; --rows) {
    const auto record = worker::TakeRecord(text, worker::kLibsvmDelimiter, whole);
    if (!record) break;
    if (worker::SplitLibsvm(record->text, 0, fields).ok()) columns = std::max(columns, fields.values.size());
  }
  return columns;
}

// Tables are often downloaded, and then a file may hold a page of the server instead.
std::string KindOfOtherText(std::string_view text) {
  std::string begin(text.substr(std::min(text.find_first_not_of(" \t\r\n"), text.size()), 16));
  for (char& c : begin) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  if (begin.starts_with("<!doctype") || begin.starts_with("<html") || begin.starts_with("<?xml")) return "HTML or XML";
  if (begin.starts_with("{\"") || begin.starts_with("[{") || begin.starts_with("[[")) return "JSON";
  return "";
}

absl::Status CheckText(const std::string& path, std::string_view text) {
  std::string kind = worker::KindOfBinary(text);
  if (kind.empty() && text.find('\0') != std::string_view::npos) kind = "binary";
  if (!kind.empty()) {
    return base::InvalidArgument("{}: is {}, not a table of text in UTF-8: save or convert it as CSV", path, kind);
  }
  if (worker::Trim(worker::WithoutMark(text)).find_first_not_of("\n\r \t") == std::string_view::npos) {
    return base::InvalidArgument("{}: the file is empty", path);
  }
  if (kind = KindOfOtherText(worker::WithoutMark(text)); !kind.empty()) {
    return base::InvalidArgument("{}: is {}, not a table: save or convert it as CSV", path, kind);
  }
  return absl::OkStatus();
}

absl::Status CheckForm(const Sample& sample) {
  if (sample.columns > kMostColumns) {
    return base::InvalidArgument("{}: a row has {} columns, at most {} are supported", sample.path, sample.columns,
                                 kMostColumns);
  }
  const auto rows = static_cast<int64_t>(sample.rows.size());
  if (sample.bad_rows <= rows / 4) return absl::OkStatus();
  return base::InvalidArgument("{} ({} of {} rows differ): the file is not a table that can be read", sample.first_bad,
                               sample.bad_rows, sample.bad_rows + rows);
}

}  // namespace

absl::StatusOr<Sample> ParseSample(const std::string& path, std::string_view text, int64_t file_bytes,
                                   const SampleLimits& limits, const model::DataFormat* format) {
  if (format == nullptr) MEDLEY_RETURN_IF_ERROR(CheckText(path, text));
  const auto all_bytes = static_cast<double>(std::max(file_bytes, static_cast<int64_t>(text.size())));
  Sample sample;
  sample.path = path;
  sample.whole = file_bytes <= static_cast<int64_t>(text.size());
  text = worker::WithoutMark(text);
  sample.format = format;
  sample.delimiter = format != nullptr ? format->delimiter : DelimiterOf(text, sample.whole);
  sample.columns = sample.delimiter == worker::kLibsvmDelimiter ? LibsvmColumns(text, sample.whole, limits.rows)
                                                                : MostFields(text, sample.delimiter).first;
  const size_t most_rows = std::clamp<size_t>(kMostFields / std::max<size_t>(1, sample.columns), 1, limits.rows);
  const std::string_view all = text;
  worker::CsvFields fields;
  int64_t line = 1;
  // The last row is complete only at the end of the file.
  while (const auto record = worker::TakeRecord(text, sample.delimiter, sample.whole)) {
    if (sample.rows.size() == most_rows) {
      text = all.substr(static_cast<size_t>(record->text.data() - all.data()));
      sample.whole = false;
      break;
    }
    const int64_t at = std::exchange(line, line + record->lines);
    if (worker::IsBlankRow(record->text, sample.delimiter)) continue;
    const absl::Status split = worker::SplitRow(record->text, sample.delimiter, sample.columns, fields);
    if (split.ok() && sample.rows.empty() && sample.bad_rows == 0) {
      sample.first_row.assign(fields.values.begin(), fields.values.end());
    }
    if (split.ok() && fields.values.size() == sample.columns) {
      sample.rows.emplace_back(fields.values.begin(), fields.values.end());
    } else if (sample.bad_rows++ == 0) {
      sample.first_bad = split.ok() ? fmt::format("{}:{}: expected {} columns, found {}", path, at, sample.columns,
                                                  fields.values.size())
                                    : fmt::format("{}:{}: {}", path, at, base::Message(split));
    }
  }
  if (sample.rows.empty() && !sample.whole) return base::InvalidArgument("{}:1: the line is too long", path);
  const size_t bytes = all.size() - text.size();
  if (const size_t bad = worker::FindInvalidUtf8(all); bad != std::string_view::npos) {
    sample.not_utf8_line = 1 + std::count(all.begin(), all.begin() + static_cast<int64_t>(bad), '\n');
  }
  const auto rows = static_cast<int64_t>(sample.rows.size());
  sample.estimated_rows = sample.whole ? rows
                                       : static_cast<int64_t>(static_cast<double>(rows) * all_bytes /
                                                              static_cast<double>(std::max<size_t>(1, bytes)));
  MEDLEY_RETURN_IF_ERROR(CheckForm(sample));
  return sample;
}

absl::StatusOr<Sample> ReadSample(const std::string& path, const SampleLimits& limits) {
  MEDLEY_ASSIGN_OR_RETURN(const std::vector<std::string> files, worker::FindFiles(path));
  if (std::error_code error; std::filesystem::is_directory(files[0], error)) {
    return base::InvalidArgument("{}: is a folder; name its files by a pattern in quotes, as '{}'", path,
                                 (std::filesystem::path(path) / "*.csv").string());
  }
  MEDLEY_ASSIGN_OR_RETURN(worker::TextFile file, worker::TextFile::Open(files[0]));
  std::string text(limits.bytes, '\0');
  MEDLEY_ASSIGN_OR_RETURN(const size_t bytes, file.Read(text.data(), text.size()));
  text.resize(bytes);
  const model::DataFormat* format = nullptr;
  if (file.columns() != worker::ColumnFormat::kNone) {
    format = model::DataFormatNamed(file.columns() == worker::ColumnFormat::kParquet ? "parquet" : "arrow");
  }
  char next = 0;
  MEDLEY_ASSIGN_OR_RETURN(const size_t more, file.Read(&next, 1));
  if (files.size() == 1 && more == 0) return ParseSample(path, text, static_cast<int64_t>(bytes), limits, format);
  // For compressed files only the part that has been read tells how much text they have.
  double on_disk = 0;
  for (const std::string& each : files) {
    std::error_code error;
    const auto size = std::filesystem::file_size(each, error);
    on_disk += error ? 0 : static_cast<double>(size);
  }
  const double all = on_disk * static_cast<double>(bytes) / static_cast<double>(std::max<int64_t>(1, file.consumed()));
  if (more == 0 && !text.empty() && text.back() != '\n') text += '\n';
  return ParseSample(path, text, std::max(static_cast<int64_t>(all), static_cast<int64_t>(text.size()) + 1), limits,
                     format);
}

const model::DataFormat* FormatOf(const Sample& sample) {
  return sample.format != nullptr ? sample.format : model::DataFormatDelimitedBy(sample.delimiter);
}

}  // namespace medley::cli
