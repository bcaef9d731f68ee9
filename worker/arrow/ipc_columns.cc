#include <arrow/ipc/options.h>
#include <arrow/ipc/reader.h>

#include "worker/arrow/arrow_columns.h"

namespace medley::worker {
namespace {

constexpr std::string_view kFileMagic = "ARROW1";

class IpcColumns final : public ArrowColumns {
 public:
  explicit IpcColumns(const ColumnOptions& options) : ArrowColumns(options.most_bytes), threads_(options.threads > 1) {}

  arrow::Status Open(int file) {
    ARROW_ASSIGN_OR_RAISE(file_, OpenFile(file, &pool_));
    ARROW_ASSIGN_OR_RAISE(size_, file_->GetSize());
    ARROW_ASSIGN_OR_RAISE(const auto head, file_->ReadAt(0, static_cast<int64_t>(kFileMagic.size())));
    stream_ = std::string_view(*head) != kFileMagic;
    ARROW_RETURN_NOT_OK(MakeReader({}));
    SetSchema(stream_ ? *batches_->schema() : *random_->schema());
    return arrow::Status::OK();
  }

  int64_t rows() const override { return -1; }
  int64_t bytes_read() const override {
    if (stream_) return file_->Tell().ValueOr(0);
    const int groups = random_->num_record_batches();
    return groups == 0 ? size_ : static_cast<int64_t>(static_cast<double>(size_) * next_group_ / groups);
  }

 protected:
  arrow::Status Choose(const std::vector<int>& columns) override {
    next_group_ = 0;
    return MakeReader(columns);
  }

  arrow::Result<std::shared_ptr<arrow::RecordBatch>> Read() override {
    std::shared_ptr<arrow::RecordBatch> batch;
    group_ = next_group_;
    if (stream_) {
      ARROW_RETURN_NOT_OK(batches_->ReadNext(&batch));
    } else if (next_group_ < random_->num_record_batches()) {
      ARROW_ASSIGN_OR_RAISE(batch, random_->ReadRecordBatch(next_group_));
    }
    ++next_group_;
    return batch;
  }

  std::string WhereOf(const arrow::Status&) override { return "record batch " + std::to_string(group_) + ": "; }

 private:
  // Without `columns`: all.
  arrow::Status MakeReader(const std::vector<int>& columns) {
    arrow::ipc::IpcReadOptions options = arrow::ipc::IpcReadOptions::Defaults();
    options.memory_pool = &pool_;
    options.use_threads = threads_;
    options.included_fields = columns;
    if (!stream_) {
      ARROW_ASSIGN_OR_RAISE(random_, arrow::ipc::RecordBatchFileReader::Open(file_, options));
      return arrow::Status::OK();
    }
    ARROW_RETURN_NOT_OK(file_->Seek(0));
    ARROW_ASSIGN_OR_RAISE(batches_, arrow::ipc::RecordBatchStreamReader::Open(file_, options));
    return arrow::Status::OK();
  }

  const bool threads_;
  std::shared_ptr<arrow::io::ReadableFile> file_;
  int64_t size_ = 0;
  bool stream_ = false;
  std::shared_ptr<arrow::ipc::RecordBatchFileReader> random_;
  std::shared_ptr<arrow::ipc::RecordBatchStreamReader> batches_;
  int next_group_ = 0;
};

}  // namespace

arrow::Result<std::unique_ptr<ColumnFile>> OpenIpc(int file, const ColumnOptions& options) {
  auto columns = std::make_unique<IpcColumns>(options);
  ARROW_RETURN_NOT_OK(columns->Open(file));
  return columns;
}

}  // namespace medley::worker
