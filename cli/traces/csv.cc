#include "cli/traces/csv.h"

#include <charconv>
#include <cmath>
#include <set>

#include "common/base/file.h"
#include "common/base/gzip.h"
#include "common/base/status.h"
#include "common/base/utf8.h"

namespace medley::cli::traces {
namespace {

std::string_view TakeTraceLine(std::string_view& text) {
  const size_t end = text.find('\n');
  std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

void SplitTraceLine(std::string_view line, std::vector<std::string_view>& fields) {
  fields.clear();
  while (true) {
    const size_t comma = line.find(',');
    fields.push_back(line.substr(0, comma));
    if (comma == std::string_view::npos) return;
    line.remove_prefix(comma + 1);
  }
}

// The first line that is not UTF-8; 0: all are.
int LineThatIsNoText(std::string_view text) {
  int line = 0;
  while (!text.empty()) {
    ++line;
    if (!base::IsUtf8(TakeTraceLine(text))) return line;
  }
  return 0;
}

}  // namespace

absl::StatusOr<CsvReader> CsvReader::Open(std::string_view text, std::string file) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
  if (const int line = LineThatIsNoText(text); line > 0) {
    return base::InvalidArgument("{}: line {} is not UTF-8; save the file as UTF-8 text", file, line);
  }
  CsvReader reader(text, std::move(file));
  std::vector<std::string_view> names;
  SplitTraceLine(TakeTraceLine(reader.rest_), names);
  reader.line_ = 1;
  if (names.size() == 1 && names[0].empty()) {
    return base::InvalidArgument("{}: the file is empty; its first line must name the columns", reader.file_);
  }
  if (names.size() > kMostColumns) {
    return base::InvalidArgument("{}: {} columns, but at most {} are read", reader.file_, names.size(), kMostColumns);
  }
  std::set<std::string_view> seen;
  for (const std::string_view name : names) {
    if (name.empty()) return base::InvalidArgument("{}: line 1: a column has no name", reader.file_);
    if (!seen.insert(name).second) {
      return base::InvalidArgument("{}: line 1: two columns are named '{}'", reader.file_, base::Printable(name));
    }
    reader.header_.emplace_back(name);
  }
  return reader;
}

absl::StatusOr<bool> CsvReader::Next() {
  while (!rest_.empty()) {
    ++line_;
    const std::string_view line = TakeTraceLine(rest_);
    if (line.empty()) continue;
    SplitTraceLine(line, fields_);
    if (fields_.size() == header_.size()) return true;
    return base::InvalidArgument("{}: {} columns, but the first line names {}", Place(), fields_.size(),
                                 header_.size());
  }
  return false;
}

std::string CsvReader::Place() const { return fmt::format("{}: line {}", file_, line_); }

absl::StatusOr<double> CsvReader::Number(size_t column, double least, double most) const {
  const std::string_view text = fields_[column];
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= least && value <= most) return value;
  return base::InvalidArgument("{}: {} is '{}', which is not a number from {} to {}", Place(),
                               base::Printable(header_[column]), base::Printable(text, 40), least, most);
}

absl::StatusOr<std::optional<std::string>> ReadIfPresent(const std::filesystem::path& folder, const std::string& name) {
  for (const char* end : {"", ".gz"}) {
    const std::filesystem::path path = folder / (name + end);
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) continue;
    MEDLEY_RETURN_IF_ERROR(base::CheckRegularFile(path));
    MEDLEY_ASSIGN_OR_RETURN(std::string bytes, base::ReadFile(path, kMostPacked));
    if (!base::IsGzip(bytes)) return std::optional(std::move(bytes));
    auto text = base::Gunzip(bytes, kMostUnpacked);
    if (!text.ok()) return base::Annotate(text.status(), path.string());
    return std::optional(*std::move(text));
  }
  return std::optional<std::string>();
}

}  // namespace medley::cli::traces
