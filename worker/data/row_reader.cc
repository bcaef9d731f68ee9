#include "worker/data/row_reader.h"

#include "common/base/status.h"
#include "worker/data/libsvm.h"
#include "worker/data/text_file.h"

namespace medley::worker {
namespace {

absl::Status CheckLength(size_t bytes) {
  if (bytes <= kLongestLine) return absl::OkStatus();
  return base::InvalidArgument("the line has {} bytes; a row has at most 64 MiB: are its line ends those of CSV?",
                               bytes);
}

}  // namespace

bool RowReader::NextLibsvm(CsvFields& fields, TextRow& row) {
  const auto record = TakeRecord(rest_, delimiter_, true);
  if (!record) return false;
  row.lines = record->lines;
  row.blank = IsBlankRow(record->text, delimiter_);
  if (row.blank) return true;
  row.status = CheckLength(record->text.size());
  if (row.status.ok()) row.status = SplitLibsvm(record->text, columns_, fields);
  return true;
}

bool RowReader::Next(CsvFields& fields, TextRow& row) {
  row = {};
  if (delimiter_ == kLibsvmDelimiter) return NextLibsvm(fields, row);
  switch (scanner_.Next(fields.values)) {
    case RowScanner::Line::kEnd:
      return false;
    case RowScanner::Line::kFields:
      row.blank = fields.values.size() == 1 && fields.values.front().empty();
      row.status = CheckLength(scanner_.line_bytes());
      return true;
    case RowScanner::Line::kQuotes:
      break;
  }
  std::string_view rest = scanner_.rest();
  const Record record = *TakeRecord(rest, delimiter_, true);
  scanner_.Continue(rest);
  row.lines = record.lines;
  row.status = CheckLength(record.text.size());
  if (row.status.ok()) row.status = SplitCsv(record.text, delimiter_, fields);
  return true;
}

}  // namespace medley::worker
