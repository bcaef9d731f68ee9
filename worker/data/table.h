// The rows of the files of a table, parsed by several threads.
//
// A row has as many fields as the header of its file; without a header as most of the first rows.
#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "common/model/job_spec.h"
#include "worker/data/read_progress.h"
#include "worker/data/row_parser.h"
#include "worker/data/source.h"

namespace medley::worker {

struct TableOptions {
  int64_t embedding_rows = 1;
  int threads = 1;
  std::stop_token stop;
  std::function<void()> on_piece;    // called by the threads after each MiB
  ReadProgress* progress = nullptr;  // may be null
  std::vector<std::string> classes;  // of the training data, where they are known
  std::vector<std::string> header;   // of the training data; empty: of the first file
  int64_t max_bad_rows = 0;
};

// Rows that are adjacent in a file.
struct TablePiece {
  size_t file = 0;
  ParsedRows rows;
  std::vector<std::string> classes;  // names of the classes by the numbers that `rows` has for them
  int64_t bad_rows = 0;
  int64_t first_bad_line = 0;  // from 1, within the piece
  int64_t lines = 0;
  std::string first_bad;
};

struct ParsedTable {
  std::vector<TablePiece> pieces;   // in the order of the rows
  std::vector<std::string> header;  // of the first file; empty without one
  int64_t rows = 0;
  int64_t bad_rows = 0;
  absl::Status status;  // InvalidArgument "path:line: ..." when more than max_bad_rows rows cannot be read, or none can
};

// Errors: those of FindFiles, ReadText and FindColumns; Cancelled; InvalidArgument when headers differ.
absl::StatusOr<ParsedTable> ParseTable(const SourceFile& source, const model::SchemaSpec& schema,
                                       const TableOptions& options);

// The same in bounded memory: some MiB of text for each thread. Calls `take` with the rows of each piece, in their
// order; the pieces of the result have the numbers of their rows only. Other errors: those of `take`; InvalidArgument
// for a row of more than 64 MiB.
using PieceSink = absl::FunctionRef<absl::Status(const TablePiece& piece)>;
absl::StatusOr<ParsedTable> ParseTableInParts(const SourceFile& source, const model::SchemaSpec& schema,
                                              const TableOptions& options, PieceSink take);

}  // namespace medley::worker
