#include "worker/data/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <limits>
#include <span>
#include <thread>

#include "common/base/mutex.h"
#include "common/base/status.h"
#include "worker/data/columns.h"
#include "worker/data/csv.h"
#include "worker/data/record.h"
#include "worker/data/text_file.h"

namespace medley::worker {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 20;

// The pieces of one file, in the order of the text. Thread-safe.
class PieceList {
 public:
  PieceList(std::string_view text, char delimiter) : rest_(text), delimiter_(delimiter) {}

  // The text of the next piece and its number, from 0; empty text at the end.
  std::pair<std::string_view, size_t> Next() {
    const base::MutexLock lock(mutex_);
    return {TakePiece(rest_, delimiter_, kPieceBytes), next_++};
  }

 private:
  base::Mutex mutex_;
  std::string_view rest_ ABSL_GUARDED_BY(mutex_);
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  const char delimiter_;
};

struct TableFile {
  const model::SchemaSpec& schema;  // with the numbers of all columns
  char delimiter = ',';
  size_t width = 0;  // fields of a row
};

TablePiece ParsePiece(std::string_view text, const TableFile& file, const TableOptions& options) {
  TablePiece piece;
  RowParser parser(file.schema, file.delimiter, options.embedding_rows, options.classes, file.width);
  // Without quotes every line is a row.
  const bool quotes = text.find('"') != std::string_view::npos;
  while (!text.empty() && !options.stop.stop_requested()) {
    const Record record = quotes ? *TakeRecord(text, file.delimiter, true) : TakeLine(text);
    const int64_t line = piece.lines + 1;
    piece.lines += record.lines;
    if (Trim(record.text).empty()) continue;
    const absl::Status status =
        record.text.size() > kLongestLine
            ? base::InvalidArgument("the line has {} bytes; a row has at most 64 MiB: are its line ends those of CSV?",
                                    record.text.size())
            : parser.Append(record.text, piece.rows);
    if (!status.ok() && piece.bad_rows++ == 0) {
      piece.first_bad_line = line;
      piece.first_bad = base::Message(status);
    }
  }
  piece.classes = parser.labels().classes();
  return piece;
}

std::vector<TablePiece> ParseText(std::string_view text, const TableFile& file, const TableOptions& options) {
  PieceList list(text, file.delimiter);
  const size_t count = std::min(text.size() / kPieceBytes + 1, static_cast<size_t>(std::max(1, options.threads)));
  std::vector<std::vector<std::pair<size_t, TablePiece>>> parsed(count);
  {
    std::vector<std::jthread> threads;
    for (auto& pieces : parsed) {
      threads.emplace_back([&] {
        for (auto [piece, number] = list.Next(); !piece.empty(); std::tie(piece, number) = list.Next()) {
          pieces.emplace_back(number, ParsePiece(piece, file, options));
          if (options.on_piece) options.on_piece();
          if (options.progress != nullptr) options.progress->Parsed(pieces.back().second.rows.samples);
        }
      });
    }
  }
  std::vector<TablePiece> all;
  for (auto& pieces : parsed) {
    for (auto& [number, piece] : pieces) {
      all.resize(std::max(all.size(), number + 1));
      all[number] = std::move(piece);
    }
  }
  return all;
}

// 0 of a file that cannot be read: reading it says why.
int64_t BytesOf(const std::string& path) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);
  return error ? 0 : static_cast<int64_t>(bytes);
}

// Counts the rows of the table and finds its first bad one. `before`: lines before the rows of each file.
void CountRows(const std::vector<std::string>& paths, const std::string& path, int64_t before, int64_t max_bad_rows,
               ParsedTable& table) {
  std::string first_bad;
  int64_t line = 0;
  for (size_t i = 0; i < table.pieces.size(); ++i) {
    const TablePiece& piece = table.pieces[i];
    if (i == 0 || piece.file != table.pieces[i - 1].file) line = before;
    if (piece.bad_rows > 0 && table.bad_rows == 0) {
      first_bad = fmt::format("{}:{}: {}", paths[piece.file], line + piece.first_bad_line, piece.first_bad);
    }
    table.bad_rows += piece.bad_rows;
    line += piece.lines;
    table.rows += piece.rows.samples;
  }
  if (table.bad_rows > max_bad_rows) {
    table.status = base::InvalidArgument("{} ({} rows cannot be parsed, spec.data.maxBadRows is {})", first_bad,
                                         table.bad_rows, max_bad_rows);
  } else if (table.rows == 0) {
    table.status = base::InvalidArgument("{}: the file has no rows", path);
  } else if (table.rows > std::numeric_limits<int>::max()) {
    table.status = base::InvalidArgument("{}: the file has more than 2^31 - 1 rows", path);
  }
}

}  // namespace

absl::StatusOr<ParsedTable> ParseTable(const SourceFile& source, const model::SchemaSpec& schema,
                                       const TableOptions& options) {
  MEDLEY_ASSIGN_OR_RETURN(const std::vector<std::string> paths, FindFiles(source.path));
  ParsedTable table;
  int64_t header_lines = 0;
  std::function<void(int64_t)> on_read;
  if (options.progress != nullptr) {
    for (const std::string& path : paths) options.progress->Expect(BytesOf(path));
    on_read = [&](int64_t bytes) { options.progress->Read(bytes); };
  }
  for (size_t i = 0; i < paths.size(); ++i) {
    MEDLEY_ASSIGN_OR_RETURN(const std::string file, ReadText(paths[i], 0, on_read));
    std::string_view text = file;
    model::SchemaSpec found = schema;
    size_t width = 0;
    if (schema.header) {
      const Record record = TakeRecord(text, source.delimiter, true).value_or(Record());
      MEDLEY_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                              HeaderNames(record.text, source.delimiter, paths[i]));
      if (i == 0) {
        table.header = names;
        header_lines = record.lines;
      }
      const bool known = !options.header.empty();
      MEDLEY_RETURN_IF_ERROR(CompareHeaders(schema, known ? options.header : table.header,
                                            known ? "the training data" : paths[0], names, paths[i]));
      MEDLEY_ASSIGN_OR_RETURN(found, FindColumns(schema, names, paths[i]));
      width = names.size();
    } else {
      width = FieldsOfMost(text, source.delimiter, ColumnsOf(schema));
    }
    std::vector<TablePiece> pieces = ParseText(text, {found, source.delimiter, width}, options);
    for (TablePiece& piece : pieces) piece.file = i;
    std::ranges::move(pieces, std::back_inserter(table.pieces));
    if (options.stop.stop_requested()) return base::Cancelled("reading {} was stopped", paths[i]);
  }
  CountRows(paths, source.path, header_lines, options.max_bad_rows, table);
  return table;
}

}  // namespace medley::worker
