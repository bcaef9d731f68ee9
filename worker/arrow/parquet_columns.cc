#include <arrow/util/thread_pool.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <parquet/properties.h>

#include <algorithm>
#include <limits>

#include "worker/arrow/arrow_columns.h"

namespace medley::worker {
namespace {

constexpr int64_t kBatchRows = int64_t{1} << 16;
constexpr int64_t kBufferBytes = int64_t{1} << 20;  // that are read of a column at once

// Decodes one row group after the other, some rows at a time.
class ParquetColumns final : public ArrowColumns {
 public:
  explicit ParquetColumns(const ColumnOptions& options) : ArrowColumns(options.most_bytes), options_(options) {}

  arrow::Status Open(int file) {
    ARROW_ASSIGN_OR_RAISE(file_, OpenFile(file, &pool_));
    ARROW_ASSIGN_OR_RAISE(size_, file_->GetSize());
    ARROW_RETURN_NOT_OK(MakeReader(false));
    std::shared_ptr<arrow::Schema> schema;
    ARROW_RETURN_NOT_OK(reader_->GetSchema(&schema));
    SetSchema(*schema);
    const parquet::FileMetaData& metadata = *reader_->parquet_reader()->metadata();
    rows_in_file_ = metadata.num_rows();
    if (rows_in_file_ < 0 || rows_in_file_ > std::numeric_limits<int32_t>::max()) {
      return arrow::Status::Invalid("it says that it has ", rows_in_file_, " rows; at most 2^31 - 1 are read");
    }
    return MakeReader(true);
  }

  int64_t rows() const override { return rows_in_file_; }
  int64_t bytes_read() const override {
    if (rows_in_file_ == 0) return size_;
    return static_cast<int64_t>(static_cast<double>(size_) * static_cast<double>(rows_read()) /
                                static_cast<double>(rows_in_file_));
  }

 protected:
  arrow::Status Choose(const std::vector<int>& columns) override {
    leaves_.clear();
    for (const int column : columns) {
      leaves_.push_back(reader_->manifest().schema_fields[static_cast<size_t>(column)].column_index);
    }
    next_group_ = 0;
    batches_.reset();
    return arrow::Status::OK();
  }

  arrow::Result<std::shared_ptr<arrow::RecordBatch>> Read() override {
    while (true) {
      if (batches_ == nullptr) {
        if (next_group_ == reader_->num_row_groups()) return nullptr;
        group_ = next_group_++;
        ARROW_ASSIGN_OR_RAISE(batches_, reader_->GetRecordBatchReader({group_}, leaves_));
      }
      std::shared_ptr<arrow::RecordBatch> batch;
      ARROW_RETURN_NOT_OK(batches_->ReadNext(&batch));
      if (batch != nullptr) return batch;
      batches_.reset();
    }
  }

  // Reads each column of the row group alone, to find the damaged one.
  std::string WhereOf(const arrow::Status&) override {
    const std::string group = "row group " + std::to_string(group_);
    for (const int leaf : leaves_) {
      const auto read = [&]() -> arrow::Status {
        ARROW_ASSIGN_OR_RAISE(const auto batches, reader_->GetRecordBatchReader({group_}, {leaf}));
        std::shared_ptr<arrow::RecordBatch> batch;
        do {
          ARROW_RETURN_NOT_OK(batches->ReadNext(&batch));
        } while (batch != nullptr);
        return arrow::Status::OK();
      };
      if (!read().ok()) {
        const auto* const column = reader_->parquet_reader()->metadata()->schema()->Column(leaf);
        return group + ", column '" + column->path()->ToDotString() + "': ";
      }
    }
    return group + ": ";
  }

 private:
  // With `codes` texts that the file keeps as codes of a dictionary stay codes. A writer whose dictionary has become
  // too large goes on with plain texts; to look each of them up would take longer than to copy it.
  arrow::Status MakeReader(bool codes) {
    parquet::ReaderProperties properties(&pool_);
    properties.enable_buffered_stream();  // else a whole row group is in memory
    properties.set_buffer_size(kBufferBytes);
    properties.set_page_checksum_verification(true);
    parquet::ArrowReaderProperties arrow_properties(options_.threads > 1);
    arrow_properties.set_batch_size(kBatchRows);
    arrow_properties.set_pre_buffer(false);
    if (codes) {
      const parquet::FileMetaData& metadata = *reader_->parquet_reader()->metadata();
      for (int leaf = 0; leaf < metadata.num_columns(); ++leaf) {
        if (HasCodes(metadata, leaf)) arrow_properties.set_read_dictionary(leaf, true);
      }
    }
    parquet::arrow::FileReaderBuilder builder;
    ARROW_RETURN_NOT_OK(builder.Open(file_, properties));
    builder.memory_pool(&pool_)->properties(arrow_properties);
    ARROW_ASSIGN_OR_RAISE(reader_, builder.Build());
    return arrow::Status::OK();
  }

  static bool HasPlainPages(const parquet::ColumnChunkMetaData& chunk) {
    return std::ranges::any_of(chunk.encoding_stats(), [](const parquet::PageEncodingStats& pages) {
      const bool of_data =
          pages.page_type == parquet::PageType::DATA_PAGE || pages.page_type == parquet::PageType::DATA_PAGE_V2;
      return of_data && pages.encoding != parquet::Encoding::RLE_DICTIONARY &&
             pages.encoding != parquet::Encoding::PLAIN_DICTIONARY;
    });
  }

  static bool HasCodes(const parquet::FileMetaData& metadata, int leaf) {
    if (metadata.schema()->Column(leaf)->physical_type() != parquet::Type::BYTE_ARRAY) return false;
    for (int group = 0; group < metadata.num_row_groups(); ++group) {
      const auto chunk = metadata.RowGroup(group)->ColumnChunk(leaf);
      if (!chunk->has_dictionary_page() || HasPlainPages(*chunk)) return false;
    }
    return metadata.num_row_groups() > 0;
  }

  const ColumnOptions options_;
  std::shared_ptr<arrow::io::ReadableFile> file_;
  int64_t size_ = 0;
  int64_t rows_in_file_ = 0;
  std::unique_ptr<parquet::arrow::FileReader> reader_;
  std::vector<int> leaves_;
  int next_group_ = 0;
  std::unique_ptr<arrow::RecordBatchReader> batches_;  // of the row group
};

}  // namespace

arrow::Result<std::unique_ptr<ColumnFile>> OpenParquet(int file, const ColumnOptions& options) {
  if (options.threads > 1) ARROW_RETURN_NOT_OK(arrow::SetCpuThreadPoolCapacity(options.threads));
  auto columns = std::make_unique<ParquetColumns>(options);
  ARROW_RETURN_NOT_OK(columns->Open(file));
  return columns;
}

}  // namespace medley::worker
