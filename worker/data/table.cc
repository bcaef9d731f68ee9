#include "worker/data/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <limits>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "common/base/mutex.h"
#include "common/base/status.h"
#include "worker/data/column_table.h"
#include "worker/data/columns.h"
#include "worker/data/csv.h"
#include "worker/data/record.h"
#include "worker/data/row_reader.h"
#include "worker/data/text_file.h"

namespace medley::worker {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 20;
constexpr int kRowsMeasured = 64;    // of a piece, after which its number of rows is estimated
constexpr double kRoom = 1.03;       // of the estimate
constexpr double kMostTimes = 4096;  // rows of a piece, as multiples of those measured

// The pieces of one file, in the order of the text. Thread-safe.
class PieceList {
 public:
  // `whole`: no more text follows.
  PieceList(std::string_view text, char delimiter, bool whole) : rest_(text), delimiter_(delimiter), whole_(whole) {}

  // The text of the next piece and its number, from 0; empty text at the end.
  std::pair<std::string_view, size_t> Next() {
    const base::MutexLock lock(mutex_);
    if (!whole_ && !EndsInText()) return {};
    return {TakePiece(rest_, delimiter_, kPieceBytes), next_++};
  }
  std::string_view rest() {
    const base::MutexLock lock(mutex_);
    return rest_;
  }

 private:
  // Whether the text that follows cannot change where the next piece ends: a record is divided by what is at most
  // kLongestQuote beyond its first line.
  bool EndsInText() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const size_t newline = rest_.find('\n', kPieceBytes);
    return newline != std::string_view::npos && rest_.size() > newline + 1 + kLongestQuote;
  }

  base::Mutex mutex_;
  std::string_view rest_ ABSL_GUARDED_BY(mutex_);
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  const char delimiter_;
  const bool whole_;
};

struct TableFile {
  const model::SchemaSpec& schema;  // with the numbers of all columns
  char delimiter = ',';
  size_t width = 0;  // fields of a row
};

// Makes room for so many times the rows, which is cheaper than to grow and copy.
void Reserve(double times, ParsedRows& rows) {
  const auto reserve = [&](auto& list) {
    list.reserve(static_cast<size_t>(static_cast<double>(list.size()) * std::min(times * kRoom, kMostTimes)));
  };
  reserve(rows.ids);
  reserve(rows.numerics);
  reserve(rows.labels);
  reserve(rows.weights);
}

TablePiece ParsePiece(std::string_view text, const TableFile& file, const TableOptions& options) {
  TablePiece piece;
  RowParser parser(file.schema, file.delimiter, options.embedding_rows, options.classes, file.width);
  RowReader reader(text, file.delimiter, file.width);
  TextRow row;
  while (!options.stop.stop_requested() && reader.Next(parser.fields(), row)) {
    const int64_t line = piece.lines + 1;
    piece.lines += row.lines;
    if (row.blank) continue;
    if (row.status.ok()) row.status = parser.AppendFields(piece.rows);
    if (row.status.ok() && piece.rows.samples == kRowsMeasured) {
      Reserve(static_cast<double>(text.size()) / static_cast<double>(text.size() - reader.rest_bytes()), piece.rows);
    }
    if (!row.status.ok() && piece.bad_rows++ == 0) {
      piece.first_bad_line = line;
      piece.first_bad = base::Message(row.status);
    }
  }
  piece.classes = parser.labels().classes();
  return piece;
}

// Parses the text and leaves in `text` what more text must follow first; nothing when it is `whole`.
std::vector<TablePiece> ParseText(std::string_view& text, bool whole, const TableFile& file,
                                  const TableOptions& options) {
  PieceList list(text, file.delimiter, whole);
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
  text = list.rest();
  return all;
}

// 0 of a file that cannot be read: reading it says why.
int64_t BytesOf(const std::string& path) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);
  return error ? 0 : static_cast<int64_t>(bytes);
}

// Counts the rows of the table and finds its first bad one. `before`: lines before the rows of each file.
// `columns`: the files have no lines.
void CountRows(const std::vector<std::string>& paths, const std::string& path, int64_t before, int64_t max_bad_rows,
               bool columns, ParsedTable& table) {
  std::string first_bad;
  int64_t line = 0;
  for (size_t i = 0; i < table.pieces.size(); ++i) {
    const TablePiece& piece = table.pieces[i];
    if (i == 0 || piece.file != table.pieces[i - 1].file) line = before;
    if (piece.bad_rows > 0 && table.bad_rows == 0) {
      first_bad = fmt::format("{}:{}{}: {}", paths[piece.file], columns ? " row " : "", line + piece.first_bad_line,
                              piece.first_bad);
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

// The text of a file, of which a part is in memory.
class TextWindow {
 public:
  TextWindow(TextFile file, std::string path, std::function<void(int64_t)> on_read)
      : file_(std::move(file)), path_(std::move(path)), on_read_(std::move(on_read)) {}

  // Drops what is in memory before `rest`, which is its end, and reads more behind it, so that `bytes` are in memory,
  // or all of the file.
  absl::Status Read(std::string_view rest, size_t bytes) {
    text_.erase(0, text_.size() - rest.size());
    while (!ended_ && text_.size() < bytes) {
      const size_t begin = text_.size();
      const size_t wanted = std::min(bytes - begin, kReadAtOnce);
      text_.resize(begin + wanted);
      MEDLEY_ASSIGN_OR_RETURN(const size_t count, file_.Read(text_.data() + begin, wanted));
      text_.resize(begin + count);
      ended_ = count < wanted;
      if (on_read_) on_read_(file_.consumed() - std::exchange(said_, file_.consumed()));
    }
    return absl::OkStatus();
  }
  // Reads at least as much again.
  absl::Status Grow() {
    if (text_.size() > kLongestLine) return base::InvalidArgument("{}: a row is longer than 64 MiB", path_);
    return Read(text_, 2 * text_.size());
  }
  std::string_view text() const { return text_; }
  bool ended() const { return ended_; }

 private:
  static constexpr size_t kReadAtOnce = size_t{1} << 22;

  TextFile file_;
  const std::string path_;
  const std::function<void(int64_t)> on_read_;
  std::string text_;
  bool ended_ = false;
  int64_t said_ = 0;
};

// Reads the files of a table, one after the other.
class TableReader {
 public:
  TableReader(const SourceFile& source, const model::SchemaSpec& schema, const TableOptions& options)
      : source_(source), schema_(schema), options_(options) {}

  absl::StatusOr<ParsedTable> Whole() {
    MEDLEY_RETURN_IF_ERROR(Begin());
    for (size_t i = 0; i < paths_.size(); ++i) {
      if (!source_.columns.empty()) {
        MEDLEY_RETURN_IF_ERROR(ReadColumns(i, {}));
        continue;
      }
      MEDLEY_ASSIGN_OR_RETURN(const std::string file, ReadText(paths_[i], 0, on_read_));
      std::string_view text = file;
      MEDLEY_RETURN_IF_ERROR(ReadHeader(i, TakeHeader(text, true).value_or(Record()), text));
      std::vector<TablePiece> pieces = ParseText(text, true, {found_, source_.delimiter, width_}, options_);
      MEDLEY_RETURN_IF_ERROR(Keep(i, std::move(pieces), {}));
    }
    return Take();
  }

  absl::StatusOr<ParsedTable> InParts(PieceSink take) {
    MEDLEY_RETURN_IF_ERROR(Begin());
    const size_t bytes = kLongestQuote + kPieceBytes * (1 + kPiecesOfThread * static_cast<size_t>(options_.threads));
    for (size_t i = 0; i < paths_.size(); ++i) {
      if (!source_.columns.empty()) {
        MEDLEY_RETURN_IF_ERROR(ReadColumns(i, take));
        continue;
      }
      MEDLEY_ASSIGN_OR_RETURN(TextFile file, TextFile::Open(paths_[i]));
      TextWindow window(std::move(file), paths_[i], on_read_);
      MEDLEY_RETURN_IF_ERROR(window.Read({}, bytes));
      MEDLEY_ASSIGN_OR_RETURN(std::string_view text, TakeHeader(i, window));
      while (true) {
        const bool last = window.ended();
        std::vector<TablePiece> pieces = ParseText(text, last, {found_, source_.delimiter, width_}, options_);
        const bool none = pieces.empty();
        MEDLEY_RETURN_IF_ERROR(Keep(i, std::move(pieces), take));
        if (last) break;
        MEDLEY_RETURN_IF_ERROR(window.Read(text, bytes));
        if (none) MEDLEY_RETURN_IF_ERROR(window.Grow());
        text = window.text();
      }
    }
    return Take();
  }

 private:
  static constexpr size_t kPiecesOfThread = 2;  // that are in memory as text

  absl::Status Begin() {
    MEDLEY_ASSIGN_OR_RETURN(paths_, FindFiles(source_.path));
    if (options_.progress == nullptr) return absl::OkStatus();
    for (const std::string& path : paths_) options_.progress->Expect(BytesOf(path));
    on_read_ = [this](int64_t bytes) { options_.progress->Read(bytes); };
    return absl::OkStatus();
  }

  // Nothing when the header ends in text that follows.
  std::optional<Record> TakeHeader(std::string_view& text, bool whole) const {
    return schema_.header ? TakeRecord(text, source_.delimiter, whole) : Record();
  }

  // Reads the header of the i-th file; returns the rows that follow it in the window.
  absl::StatusOr<std::string_view> TakeHeader(size_t i, TextWindow& window) {
    while (true) {
      std::string_view text = window.text();
      const std::optional<Record> header = TakeHeader(text, window.ended());
      const bool enough = schema_.header || text.size() > kLongestLine || HasEnoughRows(text, source_.delimiter);
      if (window.ended() || (header && enough)) {
        MEDLEY_RETURN_IF_ERROR(ReadHeader(i, header.value_or(Record()), text));
        return text;
      }
      MEDLEY_RETURN_IF_ERROR(window.Grow());
    }
  }

  // `text`: the rows, or their beginning.
  absl::Status ReadHeader(size_t i, const Record& header, std::string_view text) {
    found_ = schema_;
    if (!schema_.header) {
      width_ = FieldsOfMost(text, source_.delimiter, ColumnsOf(schema_));
      return absl::OkStatus();
    }
    MEDLEY_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                            HeaderNames(header.text, source_.delimiter, paths_[i]));
    if (i == 0) header_lines_ = header.lines;
    return UseHeader(i, names);
  }

  // `names`: of the columns of the i-th file.
  absl::Status UseHeader(size_t i, const std::vector<std::string>& names) {
    if (i == 0) table_.header = names;
    const bool known = !options_.header.empty();
    MEDLEY_RETURN_IF_ERROR(CompareHeaders(schema_, known ? options_.header : table_.header,
                                          known ? "the training data" : paths_[0], names, paths_[i]));
    MEDLEY_ASSIGN_OR_RETURN(found_, FindColumns(schema_, names, paths_[i]));
    width_ = names.size();
    return absl::OkStatus();
  }

  absl::Status ReadColumns(size_t i, const std::optional<PieceSink>& take) {
    MEDLEY_ASSIGN_OR_RETURN(ColumnTable file, ColumnTable::Open(paths_[i], source_.columns, options_.threads));
    found_ = schema_;
    MEDLEY_RETURN_IF_ERROR(UseHeader(i, file.names()));
    if (ColumnsOf(found_) > width_) {
      return base::InvalidArgument("{}: the file has {} columns, the schema needs {}", paths_[i], width_,
                                   ColumnsOf(found_));
    }
    return file.Read(found_, options_, on_read_, [&](TablePiece piece) {
      std::vector<TablePiece> pieces;
      pieces.push_back(std::move(piece));
      return Keep(i, std::move(pieces), take);
    });
  }

  // Without `take` the table keeps the rows.
  absl::Status Keep(size_t i, std::vector<TablePiece> pieces, const std::optional<PieceSink>& take) {
    if (options_.stop.stop_requested()) return base::Cancelled("reading {} was stopped", paths_[i]);
    for (TablePiece& piece : pieces) {
      piece.file = i;
      if (take) {
        MEDLEY_RETURN_IF_ERROR((*take)(piece));
        piece.rows = {.samples = piece.rows.samples};
      }
      table_.pieces.push_back(std::move(piece));
    }
    return absl::OkStatus();
  }

  ParsedTable Take() {
    CountRows(paths_, source_.path, header_lines_, options_.max_bad_rows, !source_.columns.empty(), table_);
    return std::move(table_);
  }

  const SourceFile& source_;
  const model::SchemaSpec& schema_;
  const TableOptions& options_;
  std::vector<std::string> paths_;
  std::function<void(int64_t)> on_read_;
  ParsedTable table_;
  int64_t header_lines_ = 0;
  model::SchemaSpec found_;  // with the numbers of all columns of the file
  size_t width_ = 0;         // fields of a row of the file
};

}  // namespace

absl::StatusOr<ParsedTable> ParseTable(const SourceFile& source, const model::SchemaSpec& schema,
                                       const TableOptions& options) {
  return TableReader(source, schema, options).Whole();
}

absl::StatusOr<ParsedTable> ParseTableInParts(const SourceFile& source, const model::SchemaSpec& schema,
                                              const TableOptions& options, PieceSink take) {
  return TableReader(source, schema, options).InParts(take);
}

}  // namespace medley::worker
