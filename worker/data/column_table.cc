#include "worker/data/column_table.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <thread>
#include <utility>

#include "common/base/file.h"
#include "common/base/status.h"
#include "worker/columns/column_text.h"
#include "worker/columns/open_columns.h"
#include "worker/data/column_rows.h"

namespace medley::worker {
namespace {

constexpr int64_t kLeastRowsOfThread = 1024;

// Rows [begin, end) of the batch.
TablePiece ParsePart(const ColumnBatch& batch, int64_t begin, int64_t end, const char* group, ColumnRows& rows) {
  TablePiece piece;
  piece.lines = end - begin;
  rows.Append(batch, begin, end, piece.rows, [&](int64_t row, const absl::Status& why) {
    if (piece.bad_rows++ > 0) return;
    piece.first_bad_line = row - begin + 1;
    piece.first_bad = fmt::format("{} {}: {}", group, batch.group, base::Message(why));
  });
  piece.classes = rows.labels().classes();
  return piece;
}

}  // namespace

absl::StatusOr<ColumnTable> ColumnTable::Open(const std::string& path, const std::string& format, int threads) {
  MEDLEY_ASSIGN_OR_RETURN(const int fd, base::OpenRegularFile(path));
  std::array<char, 512> beginning;
  const ssize_t read = pread(fd, beginning.data(), beginning.size(), 0);
  const ColumnFormat wanted = format == "parquet" ? ColumnFormat::kParquet : ColumnFormat::kArrow;
  const bool is_wanted = ColumnFormatOf({beginning.data(), static_cast<size_t>(std::max<ssize_t>(0, read))}) == wanted;
  absl::StatusOr<std::unique_ptr<ColumnFile>> file =
      is_wanted ? OpenColumns(fd, path, wanted, threads)
                : base::InvalidArgument("{}: the content is not {}, although spec.data says so", path,
                                        wanted == ColumnFormat::kParquet ? "Parquet" : "Arrow");
  close(fd);
  MEDLEY_RETURN_IF_ERROR(file.status());
  MEDLEY_RETURN_IF_ERROR(CheckColumns(**file, path));
  return ColumnTable(path, wanted == ColumnFormat::kParquet ? "row group" : "record batch", std::move(*file));
}

std::vector<std::string> ColumnTable::names() const {
  std::vector<std::string> names;
  for (const ColumnInfo& column : file_->columns()) names.push_back(column.name);
  return names;
}

absl::Status ColumnTable::Read(const model::SchemaSpec& schema, const TableOptions& options,
                               const std::function<void(int64_t bytes)>& on_read,
                               absl::FunctionRef<absl::Status(TablePiece piece)> take) {
  if (const std::string error = file_->Begin(ColumnsRead(schema)); !error.empty()) {
    return base::InvalidArgument("{}: {}", path_, error);
  }
  int64_t said = 0;
  ColumnBatch batch;
  const auto most = static_cast<int64_t>(std::max(1, options.threads));
  while (true) {
    if (options.stop.stop_requested()) return base::Cancelled("reading {} was stopped", path_);
    if (const std::string error = file_->Next(batch); !error.empty()) {
      return base::InvalidArgument("{}: {}", path_, error);
    }
    if (on_read) on_read(file_->bytes_read() - std::exchange(said, file_->bytes_read()));
    if (batch.rows == 0) return absl::OkStatus();
    const int64_t parts = std::clamp<int64_t>(batch.rows / kLeastRowsOfThread, 1, most);
    std::vector<TablePiece> pieces(static_cast<size_t>(parts));
    const auto parse = [&](int64_t part) {
      ColumnRows rows(schema, options.embedding_rows, options.classes);
      pieces[static_cast<size_t>(part)] =
          ParsePart(batch, batch.rows * part / parts, batch.rows * (part + 1) / parts, group_, rows);
    };
    {
      std::vector<std::jthread> threads;
      for (int64_t part = 1; part < parts; ++part) threads.emplace_back(parse, part);
      parse(0);
    }
    for (TablePiece& piece : pieces) {
      if (options.on_piece) options.on_piece();
      if (options.progress != nullptr) options.progress->Parsed(piece.rows.samples);
      MEDLEY_RETURN_IF_ERROR(take(std::move(piece)));
    }
  }
}

}  // namespace medley::worker
