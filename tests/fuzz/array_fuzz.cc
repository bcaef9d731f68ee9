// The fuzz target of files that hold arrays: IDX, NPY and raw, compressed or not. No input may crash it, and what is
// read has as many samples as labels.
//
// The first byte chooses the format and the type of the input; the rest is the file of the input and of the labels.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "common/base/file.h"
#include "common/base/status.h"
#include "worker/data/array_format.h"
#include "worker/data/dataset.h"

namespace medley::worker {
namespace {

void FuzzArray(std::string_view input) {
  if (input.empty()) return;
  const auto choice = static_cast<unsigned char>(input.front());
  input.remove_prefix(1);
  const auto idx = ParseIdx(input), npy = ParseNpy(input);
  if (idx.ok()) MEDLEY_CHECK(idx->bytes <= input.size() && !idx->sizes.empty(), "a header beyond the file");
  if (npy.ok()) MEDLEY_CHECK(npy->bytes <= input.size() && !npy->sizes.empty(), "a header beyond the file");
  static const std::filesystem::path kFolder = base::MakeTempDir("medley-array-fuzz").value();
  const std::filesystem::path file = kFolder / "data";
  std::ofstream(file, std::ios::binary) << input;
  const std::string uri = "file://" + file.string();
  model::DataSpec spec;
  spec.train = {.uri = uri, .format = choice % 3 == 0 ? "idx" : choice % 3 == 1 ? "npy" : "raw", .labels = uri};
  spec.schema.task = choice % 2 == 0 ? model::Task::kRegression : model::Task::kMultiClass;
  spec.schema.inputs = {{.name = "x", .type = choice % 5 == 0 ? "int64" : "float32"}};
  const auto data = Dataset::Load(spec.train, spec, nullptr, {});
  if (!data.ok()) return;
  MEDLEY_CHECK((*data)->rows() > 0, "a data set without rows");
  MEDLEY_CHECK((*data)->all().labels.size() == static_cast<size_t>((*data)->rows()), "samples without labels");
}

}  // namespace
}  // namespace medley::worker

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  medley::worker::FuzzArray({reinterpret_cast<const char*>(data), size});
  return 0;
}
