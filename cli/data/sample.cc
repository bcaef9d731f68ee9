#include "cli/data/sample.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <utility>

#include "common/base/status.h"
#include "worker/data/csv.h"
#include "worker/data/source.h"
#include "worker/data/text_file.h"

namespace medley::cli {
namespace {

constexpr size_t kLinesForDelimiter = 100;
constexpr size_t kMostColumns = 65536;

std::vector<std::string_view> LinesOf(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// Files that users take for CSV, by how they begin.
std::string KindOfBinary(std::string_view text) {
  constexpr std::pair<std::string_view, const char*> kKinds[] = {
      {"PAR1", "a Parquet file"},
      {"PK\x03\x04", "a ZIP archive or a spreadsheet"},
      {"\xff\xfe", "text in UTF-16"},
      {"\xfe\xff", "text in UTF-16"},
      {"BZh", "compressed with bzip2"},
      {"\xfd"
       "7zXZ",
       "compressed with xz"},
      {"\x28\xb5\x2f\xfd", "compressed with zstd"},
      {"SQLite format 3", "an SQLite database"},
      {"\x89HDF", "an HDF5 file"},
  };
  for (const auto& [begin, kind] : kKinds) {
    if (text.starts_with(begin)) return kind;
  }
  return text.find('\0') != std::string_view::npos ? "binary" : "";
}

// The number of fields of most lines, and how many lines have it.
std::pair<size_t, size_t> MostFields(const std::vector<std::string_view>& lines, char delimiter) {
  std::map<size_t, size_t> counts;
  worker::CsvFields fields;
  for (const std::string_view line : lines) {
    if (worker::SplitCsv(line, delimiter, fields).ok()) ++counts[fields.values.size()];
  }
  std::pair<size_t, size_t> most = {1, 0};
  for (const auto& [count, occurs] : counts) {
    if (occurs >= most.second) most = {count, occurs};
  }
  return most;
}

// The character that divides most lines into the same number of fields. A comma when none does, for a table of one
// column.
char DelimiterOf(const std::vector<std::string_view>& lines) {
  char best = ',';
  std::pair<size_t, size_t> most = {0, 0};  // lines, fields
  for (const char delimiter : std::array{',', '\t', ';', '|'}) {
    const auto [fields, occurs] = MostFields(lines, delimiter);
    if (fields > 1 && std::pair(occurs, fields) > most) {
      most = {occurs, fields};
      best = delimiter;
    }
  }
  return best;
}

absl::Status CheckText(const std::string& path, std::string_view text) {
  if (const std::string kind = KindOfBinary(text); !kind.empty()) {
    return base::InvalidArgument("{}: is {}, not a table of text in UTF-8: save or convert it as CSV", path, kind);
  }
  if (worker::Trim(worker::WithoutMark(text)).find_first_not_of("\n\r \t") == std::string_view::npos) {
    return base::InvalidArgument("{}: the file is empty", path);
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
                                   const SampleLimits& limits) {
  MEDLEY_RETURN_IF_ERROR(CheckText(path, text));
  const auto all_bytes = static_cast<double>(std::max(file_bytes, static_cast<int64_t>(text.size())));
  Sample sample;
  sample.path = path;
  sample.whole = file_bytes <= static_cast<int64_t>(text.size());
  // The last line is complete only at the end of the file.
  if (!sample.whole) {
    const size_t end = text.rfind('\n');
    if (end == std::string_view::npos) return base::InvalidArgument("{}:1: the line is too long", path);
    text = text.substr(0, end + 1);
  }
  std::vector<std::string_view> some;
  const std::vector<std::string_view> lines = LinesOf(worker::WithoutMark(text));
  for (const std::string_view line : lines) {
    if (some.size() < kLinesForDelimiter && !worker::Trim(line).empty()) some.push_back(line);
  }
  sample.delimiter = DelimiterOf(some);
  sample.columns = MostFields(some, sample.delimiter).first;
  worker::CsvFields fields;
  size_t bytes = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (sample.rows.size() == limits.rows) {
      sample.whole = false;
      break;
    }
    bytes += lines[i].size() + 1;
    if (worker::Trim(lines[i]).empty()) continue;
    const absl::Status split = worker::SplitCsv(lines[i], sample.delimiter, fields);
    if (split.ok() && fields.values.size() == sample.columns) {
      sample.rows.emplace_back(fields.values.begin(), fields.values.end());
    } else if (sample.bad_rows++ == 0) {
      sample.first_bad = split.ok() ? fmt::format("{}:{}: expected {} columns, found {}", path, i + 1, sample.columns,
                                                  fields.values.size())
                                    : fmt::format("{}:{}: {}", path, i + 1, base::Message(split));
    }
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
  MEDLEY_ASSIGN_OR_RETURN(worker::TextFile file, worker::TextFile::Open(files[0]));
  std::string text(limits.bytes, '\0');
  MEDLEY_ASSIGN_OR_RETURN(const size_t bytes, file.Read(text.data(), text.size()));
  text.resize(bytes);
  char next = 0;
  MEDLEY_ASSIGN_OR_RETURN(const size_t more, file.Read(&next, 1));
  if (files.size() == 1 && more == 0) return ParseSample(path, text, static_cast<int64_t>(bytes), limits);
  // Of compressed files only the part that has been read tells how much text they have.
  double on_disk = 0;
  for (const std::string& each : files) {
    std::error_code error;
    const auto size = std::filesystem::file_size(each, error);
    on_disk += error ? 0 : static_cast<double>(size);
  }
  const double all = on_disk * static_cast<double>(bytes) / static_cast<double>(std::max<int64_t>(1, file.consumed()));
  if (more == 0 && !text.empty() && text.back() != '\n') text += '\n';
  return ParseSample(path, text, std::max(static_cast<int64_t>(all), static_cast<int64_t>(text.size()) + 1), limits);
}

}  // namespace medley::cli
