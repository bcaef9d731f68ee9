#include "worker/predict/row_stream.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/status.h"
#include "worker/data/columns.h"
#include "worker/data/csv.h"
#include "worker/data/schema.h"

namespace medley::worker {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 18;
constexpr size_t kLongestLine = size_t{1} << 26;

}  // namespace

RowStream::RowStream(const ExportedModel& model, Labels labels, std::string name, Read read)
    : schema_(model.schema),
      labels_(labels),
      name_(std::move(name)),
      read_(std::move(read)),
      delimiter_(model.delimiter),
      embedding_rows_(model.embedding_rows),
      classes_(model.transform.label.classes),
      encoder_(model.transform, model.schema, model.embedding_rows) {}

RowStream::~RowStream() = default;

absl::StatusOr<bool> RowStream::NextLine(std::string_view& line) {
  size_t looked_at = begin_;
  while (true) {
    const void* const newline = std::memchr(buffer_.data() + looked_at, '\n', end_ - looked_at);
    if (newline != nullptr || (ended_ && begin_ < end_)) {
      const size_t at =
          newline == nullptr ? end_ : static_cast<size_t>(static_cast<const char*>(newline) - buffer_.data());
      line = std::string_view(buffer_).substr(begin_, at - begin_);
      begin_ = std::min(at + 1, end_);
      ++line_;
      return true;
    }
    if (ended_) return false;
    std::copy(buffer_.data() + begin_, buffer_.data() + end_, buffer_.data());
    end_ -= begin_;
    begin_ = 0;
    looked_at = end_;
    if (end_ > kLongestLine) return base::InvalidArgument("{}:{}: the line is too long", name_, line_ + 1);
    buffer_.resize(std::max(buffer_.size(), end_ + kPieceBytes));
    MEDLEY_ASSIGN_OR_RETURN(const size_t bytes, read_(buffer_.data() + end_, buffer_.size() - end_));
    ended_ = bytes == 0;
    end_ += bytes;
  }
}

absl::Status RowStream::ReadHeader(std::string_view line) {
  MEDLEY_ASSIGN_OR_RETURN(schema_, FindColumns(schema_, line, delimiter_, name_, labels_ == Labels::kIgnored));
  return absl::OkStatus();
}

absl::Status RowStream::BeginRows(std::string_view first) {
  CsvFields fields;
  MEDLEY_RETURN_IF_ERROR(SplitCsv(first, delimiter_, fields));
  columns_ = fields.values.size();
  if (labels_ == Labels::kIgnored) {
    schema_.label_column = -1;
    schema_.label_columns.clear();
  }
  parser_ = std::make_unique<RowParser>(schema_, delimiter_, embedding_rows_, classes_);
  if (columns_ >= parser_->columns()) return absl::OkStatus();
  return base::InvalidArgument("expected {} columns, found {}", parser_->columns(), columns_);
}

absl::Status RowStream::Append(std::string_view line, Batch& rows) {
  if (parser_ == nullptr) MEDLEY_RETURN_IF_ERROR(BeginRows(line));
  const absl::Status status = parser_->Append(line, rows);
  if (parser_->found() == columns_ || parser_->found() == 0) return status;
  return base::InvalidArgument("expected {} columns, found {}", columns_, parser_->found());
}

absl::Status RowStream::Next(int most, Batch& rows) {
  rows.shape = ShapeOf(schema_);
  rows.samples = 0;
  rows.ids.clear();
  rows.numerics.clear();
  rows.labels.clear();
  std::string_view line;
  while (rows.samples < most) {
    MEDLEY_ASSIGN_OR_RETURN(const bool more, NextLine(line));
    if (!more) break;
    if (line_ == 1) line = WithoutMark(line);
    if (line_ == 1 && schema_.header) {
      MEDLEY_RETURN_IF_ERROR(ReadHeader(line));
      continue;
    }
    if (Trim(line).empty()) continue;
    const absl::Status status = Append(line, rows);
    if (!status.ok()) return base::Annotate(status, fmt::format("{}:{}", name_, line_));
  }
  encoder_.Encode(rows);
  return absl::OkStatus();
}

}  // namespace medley::worker
