#include "cli/data/head_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/format.h"
#include "cli/table.h"
#include "worker/data/record.h"

namespace medley::cli {
namespace {

constexpr size_t kWidestCell = 24;

// One line of at most kWidestCell bytes; never a part of a character of UTF-8.
std::string Cell(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  if (text.size() <= kWidestCell) return text;
  size_t end = kWidestCell - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

// How rows are divided.
std::string FormName(const Sample& sample) {
  if (sample.format != nullptr) return sample.format->name;
  const char delimiter = sample.delimiter;
  if (delimiter == worker::kLibsvmDelimiter) return "libsvm";
  return fmt::format("separated by {}", delimiter == ','    ? "commas"
                                        : delimiter == '\t' ? "tabs"
                                                            : fmt::format("'{}'", delimiter));
}

}  // namespace

std::string HeadText(const Sample& sample, const TableGuess& table, size_t rows) {
  std::string text =
      fmt::format("{}: {}, {}, {}, {}\n", sample.path, Counted(std::ssize(table.columns), "column"),
                  sample.whole ? Counted(std::ssize(table.rows), "row")
                               : fmt::format("about {} rows", Thousands(static_cast<double>(sample.estimated_rows))),
                  FormName(sample), table.header ? "with a header" : "without a header");
  if (sample.bad_rows > 0) {
    text += fmt::format("{} cannot be read, the first: {}\n", Counted(sample.bad_rows, "row"), sample.first_bad);
  }
  std::vector<std::string> header = {"COLUMN", "NAME", "TYPE", "VALUES", "MISSING"};
  for (size_t r = 0; r < std::min(rows, table.rows.size()); ++r) header.push_back(fmt::format("ROW {}", r + 1));
  Table columns(std::move(header));
  for (const ColumnGuess& column : table.columns) {
    const std::string values =
        column.many_values ? "> " + std::to_string(column.values.size()) : std::to_string(column.values.size());
    std::vector<std::string> cells = {std::to_string(column.number), OrDash(!column.name.empty(), Cell(column.name)),
                                      TypeName(column.type), values, std::to_string(column.missing)};
    for (size_t r = 0; r < std::min(rows, table.rows.size()); ++r) {
      cells.push_back(Cell(table.rows[r][static_cast<size_t>(column.number)]));
    }
    columns.Add(std::move(cells));
  }
  return text + "\n" + columns.Text();
}

std::string HeadJson(const Sample& sample, const TableGuess& table, size_t rows) {
  using Json = nlohmann::ordered_json;
  Json columns = Json::array();
  for (const ColumnGuess& column : table.columns) {
    columns.push_back({{"number", column.number},
                       {"name", column.name},
                       {"type", TypeName(column.type)},
                       {"values", column.values.size()},
                       {"moreValues", column.many_values},
                       {"missing", column.missing}});
  }
  Json head = Json::array();
  for (size_t r = 0; r < std::min(rows, table.rows.size()); ++r) head.push_back(table.rows[r]);
  const Json json = {{"path", sample.path},
                     {"rows", table.rows.size()},
                     {"whole", sample.whole},
                     {"estimatedRows", sample.estimated_rows - (table.header ? 1 : 0)},
                     {"delimiter", std::string(1, sample.delimiter)},
                     {"header", table.header},
                     {"badRows", sample.bad_rows},
                     {"firstBad", sample.first_bad},
                     {"columns", std::move(columns)},
                     {"head", std::move(head)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace medley::cli
