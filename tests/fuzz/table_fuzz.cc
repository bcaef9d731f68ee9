// The fuzz target of tables: lines, gzip, fields and rows. No input may crash it, and a row is read whole or not at
// all.
//
// The first byte chooses the delimiter, the task and whether there is a header; the rest is the file.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "common/base/file.h"
#include "common/base/status.h"
#include "worker/data/dataset.h"
#include "worker/data/record.h"
#include "worker/data/row_parser.h"

namespace medley::worker {
namespace {

void FuzzRows(unsigned char choice, std::string_view text) {
  model::SchemaSpec schema;
  schema.task = choice % 2 == 0 ? model::Task::kBinary : model::Task::kRegression;
  schema.label_column = 0;
  schema.categorical = {1, 3};
  schema.numeric = {2};
  RowParser parser(schema, choice % 3 == 0 ? '\t' : ',', 64);
  ParsedRows rows;
  int64_t samples = 0;
  const char delimiter = choice % 3 == 0 ? '\t' : ',';
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
  spec.train = {.uri = "file://" + file.string(), .format = "csv"};
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
