// The fuzz target of tables of text: lines, gzip and zstd, fields and rows, also of libsvm. No input may crash it, a
// row is read whole or not at all, and the fast way to divide rows gives what the plain one does.
//
// The first byte chooses the format, the task and whether there is a header; the rest is the file.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/model/data_format.h"
#include "worker/data/dataset.h"
#include "worker/data/libsvm.h"
#include "worker/data/record.h"
#include "worker/data/row_parser.h"
#include "worker/data/row_reader.h"

namespace medley::worker {
namespace {

constexpr char kDelimiters[] = {',', ',', '\t', kLibsvmDelimiter};

char DelimiterOf(unsigned char choice) { return kDelimiters[choice / 8 % 4]; }

// RowReader against TakeRecord and SplitRow.
void CompareReaders(std::string_view text, char delimiter) {
  constexpr size_t kColumns = 4;  // of libsvm
  RowReader reader(text, delimiter, kColumns);
  CsvFields fast, plain;
  TextRow row;
  while (const auto record = TakeRecord(text, delimiter, true)) {
    MEDLEY_CHECK(reader.Next(fast, row), "a row is missing");
    MEDLEY_CHECK(row.lines == record->lines, "a row has other lines");
    const bool blank = IsBlankRow(record->text, delimiter);
    MEDLEY_CHECK(row.blank == blank, "a row is blank, or is not");
    if (blank) continue;
    const bool ok = SplitRow(record->text, delimiter, kColumns, plain).ok();
    MEDLEY_CHECK(row.status.ok() == ok && (!ok || fast.values == plain.values), "a row has other fields");
  }
  MEDLEY_CHECK(!reader.Next(fast, row), "a row is too many");
}

void FuzzRows(unsigned char choice, std::string_view text) {
  model::SchemaSpec schema;
  schema.task = choice % 2 == 0 ? model::Task::kBinary : model::Task::kRegression;
  schema.label_column = 0;
  schema.categorical = {1, 3};
  schema.numeric = {2};
  const char delimiter = DelimiterOf(choice);
  CompareReaders(text, delimiter);
  RowParser parser(schema, delimiter, 64);
  ParsedRows rows;
  int64_t samples = 0;
  for (size_t before = text.size(); const auto record = TakeRecord(text, delimiter, true); before = text.size()) {
    MEDLEY_CHECK(text.size() < before && before - text.size() <= record->text.size() + 1, "text was lost");
    if (parser.Append(record->text, rows).ok()) ++samples;
    MEDLEY_CHECK(rows.samples == samples, "a row was counted that was not read");
  }
  for (const int32_t id : rows.ids) MEDLEY_CHECK(id >= 0 && id < 64, "an id is outside of the table");
}

void FuzzTable(std::string_view input) {
  if (input.empty()) return;
  const auto choice = static_cast<unsigned char>(input.front());
  input.remove_prefix(1);
  FuzzRows(choice, input);
  static const std::filesystem::path kFolder = base::MakeTempDir("medley-table-fuzz").value();
  const std::filesystem::path file = kFolder / (choice % 5 == 0 ? "data.csv.gz" : "data.csv");
  std::ofstream(file, std::ios::binary) << input;
  model::DataSpec spec;
  spec.train = {.uri = "file://" + file.string(), .format = model::DataFormatDelimitedBy(DelimiterOf(choice))->name};
  spec.schema.label_column = 0;
  spec.schema.header = choice % 2 == 1;
  spec.schema.categorical = {1, 3};
  spec.schema.numeric = {2};
  spec.schema.numeric_buckets = choice % 7;
  spec.max_bad_rows = 1000;
  const auto data = Dataset::Load(spec.train, spec, nullptr, {.embedding_rows = 64});
  if (data.ok()) MEDLEY_CHECK((*data)->rows() > 0, "a data set without rows");
}

}  // namespace
}  // namespace medley::worker

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  medley::worker::FuzzTable({reinterpret_cast<const char*>(data), size});
  return 0;
}
