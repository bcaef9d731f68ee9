// What files of Parquet and of Arrow IPC have in common: batches of Arrow, of which parts are converted. Not
// thread-safe.
#pragma once

#include <arrow/io/file.h>
#include <arrow/memory_pool.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>

#include <memory>
#include <string>
#include <vector>

#include "worker/arrow/convert_array.h"
#include "worker/columns/column_file.h"

namespace medley::worker {

// The pool of all files of the process, with the bound that the first one had. It is never freed: threads of Arrow may
// still free buffers after a file was closed.
arrow::MemoryPool& BoundedPool(int64_t most_bytes);

class ArrowColumns : public ColumnFile {
 public:
  const std::vector<ColumnInfo>& columns() const override { return columns_; }
  std::string Begin(const std::vector<int>& columns) final;
  std::string Next(ColumnBatch& batch) final;

 protected:
  // Copies the descriptor.
  static arrow::Result<std::shared_ptr<arrow::io::ReadableFile>> OpenFile(int file, arrow::MemoryPool* pool);

  explicit ArrowColumns(int64_t most_bytes) : pool_(BoundedPool(most_bytes)) {}
  void SetSchema(const arrow::Schema& schema);
  int64_t rows_read() const { return rows_; }  // since Begin
  // Begins to read these columns, each once and in rising order.
  virtual arrow::Status Choose(const std::vector<int>& columns) = 0;
  // The next batch of them; null at the end.
  virtual arrow::Result<std::shared_ptr<arrow::RecordBatch>> Read() = 0;
  // More about an error of Read, such as the column that it is in: "row group 3, column 'age': ".
  virtual std::string WhereOf(const arrow::Status& error) = 0;

  arrow::MemoryPool& pool_;
  int group_ = 0;  // of the last batch

 private:
  arrow::Status Convert(ColumnBatch& batch);

  std::vector<ColumnInfo> columns_;
  std::vector<size_t> places_;  // of the columns of Begin among those that are read
  std::vector<ArrayConverter> converters_;
  std::shared_ptr<arrow::RecordBatch> current_;
  std::shared_ptr<arrow::RecordBatch> part_;  // that was converted last
  int64_t converted_ = 0;                     // rows of `current_`
  int64_t rows_ = 0;                          // before `current_` and of it that were converted
};

arrow::Result<std::unique_ptr<ColumnFile>> OpenParquet(int file, const ColumnOptions& options);
arrow::Result<std::unique_ptr<ColumnFile>> OpenIpc(int file, const ColumnOptions& options);

// One line, without what Arrow puts before and after its messages.
std::string MessageOf(const arrow::Status& status);

}  // namespace medley::worker
