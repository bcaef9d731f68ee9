#include "worker/data/csv.h"

#include <algorithm>

#include "common/base/status.h"

namespace medley::worker {
namespace {

constexpr std::string_view kBlank = " \r";

// Reads the quoted field that begins at text[0] == '"'; sets `rest` to the text after the closing quote.
absl::Status ReadQuoted(std::string_view text, std::string& value, std::string_view& rest) {
  value.clear();
  for (size_t i = 1; i < text.size(); ++i) {
    if (text[i] != '"') {
      value += text[i];
    } else if (i + 1 < text.size() && text[i + 1] == '"') {
      value += text[i++];
    } else {
      rest = text.substr(i + 1);
      return absl::OkStatus();
    }
  }
  return base::InvalidArgument("a quoted field has no closing quote");
}

}  // namespace

std::string_view WithoutMark(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  return text;
}

absl::Status SplitCsv(std::string_view line, char delimiter, CsvFields& fields) {
  fields.values.clear();
  if (line.find('"') == std::string_view::npos) {
    // Most fields are short: to look at each character is faster than to search.
    size_t begin = 0;
    for (size_t at = 0; at < line.size(); ++at) {
      if (line[at] != delimiter) continue;
      fields.values.push_back(Trim(line.substr(begin, at - begin)));
      begin = at + 1;
    }
    fields.values.push_back(Trim(line.substr(begin)));
    return absl::OkStatus();
  }
  // Views into these strings must stay valid, so reserve: each pair of delimiters encloses at most one quoted field.
  fields.unescaped.resize(1 + static_cast<size_t>(std::ranges::count(line, delimiter)));
  size_t quoted = 0;
  while (true) {
    const size_t start = line.find_first_not_of(kBlank);
    if (start != std::string_view::npos && line[start] == '"') {
      std::string& value = fields.unescaped[quoted++];
      MEDLEY_RETURN_IF_ERROR(ReadQuoted(line.substr(start), value, line));
      const size_t end = line.find(delimiter);
      if (!Trim(line.substr(0, end)).empty()) {
        return base::InvalidArgument("column {} has text after its closing quote", fields.values.size());
      }
      fields.values.push_back(value);
      if (end == std::string_view::npos) return absl::OkStatus();
      line.remove_prefix(end + 1);
      continue;
    }
    const size_t end = line.find(delimiter);
    fields.values.push_back(Trim(line.substr(0, end)));
    if (end == std::string_view::npos) return absl::OkStatus();
    line.remove_prefix(end + 1);
  }
}

}  // namespace medley::worker
