#include "worker/predict/row_stream.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "common/base/status.h"
#include "worker/data/columns.h"
#include "worker/data/csv.h"
#include "worker/data/libsvm.h"
#include "worker/data/record.h"
#include "worker/data/schema.h"
#include "worker/data/text_file.h"

namespace medley::worker {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 18;

}  // namespace

RowStream::RowStream(const ExportedModel& model, Labels labels, std::string name, Read read, int64_t max_bad_rows)
    : schema_(model.schema),
      labels_(labels),
      name_(std::move(name)),
      read_(std::move(read)),
      delimiter_(model.delimiter),
      embedding_rows_(model.embedding_rows),
      classes_(model.transform.label.classes),
      training_header_(model.transform.header),
      encoder_(model.transform, model.schema, model.embedding_rows),
      max_bad_rows_(max_bad_rows) {}

RowStream::~RowStream() = default;

absl::Status RowStream::Fill() {
  std::copy(buffer_.data() + begin_, buffer_.data() + end_, buffer_.data());
  end_ -= begin_;
  begin_ = 0;
  if (end_ > kLongestLine) return base::InvalidArgument("{}:{}: the line is too long", name_, line_);
  buffer_.resize(std::max(buffer_.size(), end_ + kPieceBytes));
  MEDLEY_ASSIGN_OR_RETURN(const size_t bytes, read_(buffer_.data() + end_, buffer_.size() - end_));
  ended_ = bytes == 0;
  end_ += bytes;
  return absl::OkStatus();
}

// Reads as many rows as FieldsOfMost looks at.
absl::Status RowStream::LookAhead() {
  constexpr size_t kMost = size_t{1} << 22;
  while (!ended_ && end_ - begin_ < kMost &&
         !HasEnoughRows(std::string_view(buffer_).substr(begin_, end_ - begin_), delimiter_)) {
    MEDLEY_RETURN_IF_ERROR(Fill());
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> RowStream::NextRecord(std::string_view& record) {
  while (true) {
    std::string_view rest = std::string_view(buffer_).substr(begin_, end_ - begin_);
    if (line_ == 1 && end_ >= 3) rest = WithoutMark(rest);
    const bool enough = ended_ || line_ > 1 || end_ >= 3;  // to know whether there is a mark
    const auto taken = enough ? TakeRecord(rest, delimiter_, ended_) : std::nullopt;
    if (taken) {
      record = taken->text;
      begin_ = end_ - rest.size();
      row_line_ = line_;
      line_ += taken->lines;
      return true;
    }
    if (ended_) return false;
    MEDLEY_RETURN_IF_ERROR(Fill());
  }
}

absl::Status RowStream::ReadHeader(std::string_view record) {
  MEDLEY_ASSIGN_OR_RETURN(const std::vector<std::string> names, HeaderNames(record, delimiter_, name_));
  const bool ignored = labels_ == Labels::kIgnored;
  MEDLEY_RETURN_IF_ERROR(CompareHeaders(schema_, training_header_, "the training data", names, name_, !ignored));
  // Data without weights are evaluated without them.
  if (std::ranges::find(names, schema_.names.weight) == names.end()) schema_.names.weight.clear();
  MEDLEY_ASSIGN_OR_RETURN(schema_, FindColumns(schema_, names, name_, ignored));
  columns_ = names.size();
  return absl::OkStatus();
}

// `first` is in the buffer, before `begin_`.
absl::Status RowStream::BeginRows(std::string_view first) {
  if (labels_ == Labels::kIgnored) {
    schema_.label_column = -1;
    schema_.label_columns.clear();
    schema_.weight_column = -1;
  }
  const size_t least = ColumnsOf(schema_);
  CsvFields fields;
  if (columns_ == 0) {
    const std::string_view rows =
        std::string_view(buffer_).substr(0, end_).substr(static_cast<size_t>(first.data() - buffer_.data()));
    columns_ = FieldsOfMost(rows, delimiter_, least);
    if (SplitRow(first, delimiter_, least, fields).ok() && fields.values.size() < least && max_bad_rows_ == 0) {
      return base::InvalidArgument("expected {} columns, found {}", least, fields.values.size());
    }
  }
  if (columns_ < least) return base::InvalidArgument("expected {} columns, found {}", least, columns_);
  parser_ = std::make_unique<RowParser>(schema_, delimiter_, embedding_rows_, classes_, columns_);
  return absl::OkStatus();
}

absl::Status RowStream::Append(std::string_view record) {
  const absl::Status status = parser_->Append(record, parsed_);
  if (parser_->found() == columns_ || parser_->found() == 0) return status;
  return base::InvalidArgument("expected {} columns, found {}", columns_, parser_->found());
}

absl::Status RowStream::Skip(const absl::Status& why) {
  const absl::Status error = base::Annotate(why, fmt::format("{}:{}", name_, row_line_));
  if (bad_rows_++ == 0) first_bad_ = base::Message(error);
  if (bad_rows_ <= max_bad_rows_) return absl::OkStatus();
  if (max_bad_rows_ == 0) return error;
  return base::InvalidArgument("{} ({} rows cannot be read, {} are allowed)", first_bad_, bad_rows_, max_bad_rows_);
}

absl::Status RowStream::Next(int most, Batch& rows) {
  rows.shape = ShapeOf(schema_);
  rows.samples = 0;
  rows.ids.clear();
  rows.numerics.clear();
  rows.labels.clear();
  rows.weights.clear();
  parsed_.samples = 0;
  parsed_.ids.clear();
  parsed_.numerics.clear();
  parsed_.labels.clear();
  parsed_.weights.clear();
  skipped_.assign(1, 0);
  if (line_ == 1 && !schema_.header) MEDLEY_RETURN_IF_ERROR(LookAhead());
  std::string_view record;
  while (parsed_.samples < most) {
    MEDLEY_ASSIGN_OR_RETURN(const bool more, NextRecord(record));
    if (!more) break;
    if (row_line_ == 1 && schema_.header) {
      MEDLEY_RETURN_IF_ERROR(ReadHeader(record));
      continue;
    }
    if (IsBlankRow(record, delimiter_)) continue;
    if (parser_ == nullptr) {
      if (const absl::Status begun = BeginRows(record); !begun.ok()) {
        return base::Annotate(begun, fmt::format("{}:{}", name_, row_line_));
      }
    }
    if (const absl::Status status = Append(record); status.ok()) {
      skipped_.push_back(0);
    } else {
      MEDLEY_RETURN_IF_ERROR(Skip(status));
      ++skipped_.back();
    }
  }
  encoder_.Encode(parsed_, rows);
  return absl::OkStatus();
}

}  // namespace medley::worker
