#include "worker/data/record.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "worker/data/csv.h"

namespace medley::worker {
namespace {

constexpr size_t kNone = std::string_view::npos;

bool HasQuotes(std::string_view text, char delimiter) {
  return delimiter != kLibsvmDelimiter && text.find('"') != kNone;
}

bool IsBlank(char c) { return c == ' ' || c == '\r'; }

// Whether the character at `at` is the first one of its field that is not blank. `field` begins one.
bool BeginsField(std::string_view text, size_t at, size_t field, char delimiter) {
  while (at > field && IsBlank(text[at - 1])) --at;
  return at == field || text[at - 1] == delimiter;
}

// The position of the quote that ends the quoted field whose opening quote is at `open`; kNone when there is none. A
// quote at the end of the text ends the field.
size_t ClosingQuote(std::string_view text, size_t open) {
  size_t at = open + 1;
  while (true) {
    at = text.find('"', at);
    if (at == kNone || at + 1 == text.size() || text[at + 1] != '"') return at;
    at += 2;
  }
}

enum class Ending { kFound, kNoRecord, kUnknown };

// Finds the end of the record that begins the text, whose first line ends at `line_end`. kUnknown: the text is too
// short to tell.
Ending FindEnd(std::string_view text, char delimiter, size_t& line_end, int64_t& lines) {
  size_t field = 0;  // where a field begins
  size_t at = 0;
  while (true) {
    const size_t open = text.substr(0, line_end).find('"', at);
    if (open == kNone) return Ending::kFound;
    at = open + 1;
    if (!BeginsField(text, open, field, delimiter)) continue;
    const size_t close = ClosingQuote(text, open);
    if (close == kNone || close + 1 == text.size()) return close == kNone ? Ending::kNoRecord : Ending::kUnknown;
    const auto breaks = static_cast<int64_t>(
        std::count(text.begin() + static_cast<int64_t>(open), text.begin() + static_cast<int64_t>(close), '\n'));
    lines += breaks;
    size_t after = close + 1;
    while (after < text.size() && IsBlank(text[after])) ++after;
    if (after == text.size()) return Ending::kUnknown;
    if (breaks > 0) line_end = std::min(text.find('\n', after), text.size());
    if (text[after] != delimiter && text[after] != '\n') {
      if (lines > 1) return Ending::kNoRecord;
      // A bad row of one line: SplitCsv looks for its next field in the same way.
      after = std::min(text.find(delimiter, after), line_end);
    }
    if (after >= line_end) return Ending::kFound;
    field = at = after + 1;
  }
}

}  // namespace

std::optional<Record> TakeRecord(std::string_view& text, char delimiter, bool whole) {
  if (text.empty()) return std::nullopt;
  const size_t newline = text.find('\n');
  if (newline == kNone && !whole) return std::nullopt;
  const size_t first_end = std::min(newline, text.size());
  const auto take = [&](size_t end, int64_t lines) {
    const Record record{text.substr(0, end), lines};
    text.remove_prefix(std::min(end + 1, text.size()));
    return record;
  };
  if (!HasQuotes(text.substr(0, first_end), delimiter)) return take(first_end, 1);
  const std::string_view looked_at = text.substr(0, first_end + kLongestQuote);
  const bool cut = looked_at.size() < text.size();
  size_t end = first_end;
  int64_t lines = 1;
  const Ending ending = FindEnd(looked_at, delimiter, end, lines);
  if (ending == Ending::kFound && end < looked_at.size()) return take(end, lines);
  if (!whole && !cut) return std::nullopt;
  if (ending == Ending::kNoRecord || cut) return take(first_end, 1);
  return take(looked_at.size(), lines);
}

bool IsBlankRow(std::string_view text, char delimiter) {
  if (delimiter != kLibsvmDelimiter) return Trim(text).empty();
  return text.substr(0, text.find('#')).find_first_not_of(" \t\r") == kNone;
}

std::string_view TakePiece(std::string_view& text, char delimiter, size_t bytes) {
  const std::string_view all = text;
  if (text.size() <= bytes) {
    text = {};
    return all;
  }
  const size_t newline = text.find('\n', bytes);
  const size_t end = newline == kNone ? text.size() : newline + 1;
  // Without quotes every line is a row.
  if (!HasQuotes(text.substr(0, end), delimiter)) {
    text.remove_prefix(end);
    return all.substr(0, end);
  }
  while (all.size() - text.size() < bytes && TakeRecord(text, delimiter, true)) {
  }
  return all.substr(0, all.size() - text.size());
}

size_t FieldsOfMost(std::string_view text, char delimiter, size_t least) {
  if (delimiter == kLibsvmDelimiter) return least;
  std::vector<std::pair<size_t, int>> rows;  // fields, and how many rows have them, in the order of the first ones
  CsvFields fields;
  for (int seen = 0; seen < kRowsLookedAt;) {
    const auto record = TakeRecord(text, delimiter, true);
    if (!record) break;
    if (IsBlankRow(record->text, delimiter)) continue;
    ++seen;
    if (!SplitCsv(record->text, delimiter, fields).ok() || fields.values.size() < least) continue;
    auto found = std::ranges::find(rows, fields.values.size(), &std::pair<size_t, int>::first);
    if (found == rows.end()) found = rows.insert(rows.end(), {fields.values.size(), 0});
    ++found->second;
  }
  const auto most = std::ranges::max_element(rows, {}, &std::pair<size_t, int>::second);
  return most == rows.end() ? least : most->first;
}

bool HasEnoughRows(std::string_view text, char delimiter) {
  for (int rows = 0; rows < kRowsLookedAt;) {
    const auto record = TakeRecord(text, delimiter, false);
    if (!record) return false;
    rows += IsBlankRow(record->text, delimiter) ? 0 : 1;
  }
  return true;
}

}  // namespace medley::worker
