#include "worker/arrow/arrow_columns.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>

namespace medley::worker {

arrow::MemoryPool& BoundedPool(int64_t most_bytes) {
  static auto* const pool = new arrow::CappedMemoryPool(arrow::default_memory_pool(), most_bytes);
  return *pool;
}

std::string MessageOf(const arrow::Status& status) {
  std::string text = status.message();
  std::ranges::replace(text, '\n', ' ');
  text.resize(text.find_last_not_of(" .") + 1);
  return text.empty() ? status.CodeAsString() : text;
}

arrow::Result<std::shared_ptr<arrow::io::ReadableFile>> ArrowColumns::OpenFile(int file, arrow::MemoryPool* pool) {
  const int copy = fcntl(file, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return arrow::Status::IOError("no descriptor is left for the file");
  return arrow::io::ReadableFile::Open(copy, pool);
}

void ArrowColumns::SetSchema(const arrow::Schema& schema) {
  for (const auto& field : schema.fields()) {
    columns_.push_back({field->name(), field->type()->ToString(), IsReadable(*field->type())});
  }
}

std::string ArrowColumns::Begin(const std::vector<int>& columns) {
  try {
    std::vector<int> chosen = columns;
    std::ranges::sort(chosen);
    chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
    places_.clear();
    for (const int column : columns) {
      places_.push_back(static_cast<size_t>(std::ranges::lower_bound(chosen, column) - chosen.begin()));
    }
    converters_ = std::vector<ArrayConverter>(columns.size());
    current_.reset();
    converted_ = rows_ = 0;
    group_ = 0;
    const arrow::Status status = Choose(chosen);
    return status.ok() ? "" : MessageOf(status);
  } catch (const std::exception& error) {
    return error.what();
  }
}

arrow::Status ArrowColumns::Convert(ColumnBatch& batch) {
  while (current_ == nullptr || converted_ == current_->num_rows()) {
    ARROW_ASSIGN_OR_RAISE(current_, Read());
    if (current_ == nullptr) return arrow::Status::OK();
    ARROW_RETURN_NOT_OK(current_->Validate());
    converted_ = 0;
  }
  batch.rows = std::min(kMostBatchRows, current_->num_rows() - converted_);
  part_ = current_->Slice(converted_, batch.rows);
  for (size_t i = 0; i < places_.size(); ++i) {
    const auto column = static_cast<int>(places_[i]);
    if (column >= part_->num_columns()) return arrow::Status::Invalid("a batch has too few columns");
    auto values = converters_[i].Convert(*part_->column(column));
    if (!values.ok()) {
      return arrow::Status::Invalid("column '", part_->column_name(column), "': ", values.status().message());
    }
    batch.columns.push_back(*values);
  }
  batch.group = group_;
  batch.first_row = rows_;
  converted_ += batch.rows;
  rows_ += batch.rows;
  return arrow::Status::OK();
}

std::string ArrowColumns::Next(ColumnBatch& batch) {
  batch.rows = 0;
  batch.columns.clear();
  try {
    const arrow::Status status = Convert(batch);
    if (status.ok()) return "";
    batch.rows = 0;
    return WhereOf(status) + MessageOf(status);
  } catch (const std::exception& error) {
    batch.rows = 0;
    return error.what();
  }
}

}  // namespace medley::worker

extern "C" __attribute__((visibility("default"))) medley::worker::ColumnFile* MedleyOpenColumns(
    int file, const medley::worker::ColumnOptions& options, std::string& error) {
  using medley::worker::MessageOf;
  try {
    auto opened = options.parquet ? medley::worker::OpenParquet(file, options) : medley::worker::OpenIpc(file, options);
    if (opened.ok()) return std::move(*opened).release();
    error = MessageOf(opened.status());
  } catch (const std::exception& thrown) {
    error = thrown.what();
  }
  return nullptr;
}
