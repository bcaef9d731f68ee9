// The fuzz target of Parquet and Arrow files, read as columns and as text. No input may crash it or take it much
// memory.
//
// The first byte chooses the format that the job names; the rest is the file.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "common/base/file.h"
#include "common/base/status.h"
#include "worker/data/dataset.h"
#include "worker/data/text_file.h"

namespace medley::worker {
namespace {

void FuzzColumns(std::string_view input) {
  if (input.empty()) return;
  const auto choice = static_cast<unsigned char>(input.front());
  input.remove_prefix(1);
  static const std::filesystem::path kFolder = base::MakeTempDir("medley-columns-fuzz").value();
  const std::filesystem::path file = kFolder / "data";
  std::ofstream(file, std::ios::binary) << input;
  model::DataSpec spec;
  spec.train = {.uri = "file://" + file.string(), .format = choice % 2 == 0 ? "parquet" : "arrow"};
  spec.schema.header = true;
  spec.schema.label_column = 0;
  spec.schema.numeric = {1, 2, 3, 6};
  spec.schema.categorical = {4, 12, 13, 14};
  spec.max_bad_rows = 1000;
  const auto data = Dataset::Load(spec.train, spec, nullptr, {.embedding_rows = 64});
  if (data.ok()) MEDLEY_CHECK((*data)->rows() > 0, "a data set without rows");
  const auto text = ReadText(file, size_t{64} << 20);
  if (text.ok()) MEDLEY_CHECK(text->size() < size_t{64} << 20, "more text than was allowed");
}

}  // namespace
}  // namespace medley::worker

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  medley::worker::FuzzColumns({reinterpret_cast<const char*>(data), size});
  return 0;
}
