// Reads one file of columns, Parquet or Arrow, into the rows of a table. Not thread-safe.
#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/statusor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/model/data_format.h"
#include "common/model/job_spec.h"
#include "worker/columns/column_file.h"
#include "worker/data/table.h"

namespace medley::worker {

class ColumnTable {
 public:
  // Errors: those of OpenRegularFile, OpenColumns and CheckColumns; InvalidArgument for a file of another format.
  static absl::StatusOr<ColumnTable> Open(const std::string& path, const std::string& format, int threads);

  std::vector<std::string> names() const;
  // Parses all rows, by `options.threads` threads, and calls `take` with each piece, in their order, until it returns
  // an error. `schema` has the numbers of all columns. `on_read` is called with the bytes of the file that were read
  // since the last call. Errors: those of `take`; Cancelled; InvalidArgument for damaged data.
  absl::Status Read(const model::SchemaSpec& schema, const TableOptions& options,
                    const std::function<void(int64_t bytes)>& on_read,
                    absl::FunctionRef<absl::Status(TablePiece piece)> take);

 private:
  ColumnTable(std::string path, const char* group, std::unique_ptr<ColumnFile> file)
      : path_(std::move(path)), group_(group), file_(std::move(file)) {}

  std::string path_;
  const char* group_;  // what ColumnBatch::group counts
  std::unique_ptr<ColumnFile> file_;
};

}  // namespace medley::worker
