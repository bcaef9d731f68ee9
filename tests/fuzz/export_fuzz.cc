// The fuzz target of exported models: model.json, schema.json and model.safetensors, separated by NUL bytes. What is
// accepted has every tensor in the size that its layer has.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "common/base/file.h"
#include "common/base/status.h"
#include "worker/export/read_export.h"

namespace medley::worker {
namespace {

// The part before the first NUL byte, which is removed with that byte.
std::string_view TakePart(std::string_view& input) {
  const size_t end = std::min(input.find('\0'), input.size());
  const std::string_view part = input.substr(0, end);
  input.remove_prefix(std::min(end + 1, input.size()));
  return part;
}

void FuzzExport(std::string_view input) {
  static const std::filesystem::path kFolder = base::MakeTempDir("medley-export-fuzz").value();
  for (const std::string_view name : {kModelFile, kSchemaFile}) {
    std::ofstream(kFolder / name, std::ios::binary) << TakePart(input);
  }
  std::ofstream(kFolder / kWeightsFile, std::ios::binary) << input;
  const auto loaded = ReadExport(kFolder);
  if (!loaded.ok()) return;
  for (const ExportedTensor& tensor : TensorsOf(loaded->model.graph)) {
    const auto weights = loaded->weights.find(tensor.name);
    MEDLEY_CHECK(weights != loaded->weights.end(), "a model without " + tensor.name);
    MEDLEY_CHECK(static_cast<int64_t>(weights->second.size()) == tensor.spec.Size(), "the wrong size: " + tensor.name);
  }
}

}  // namespace
}  // namespace medley::worker

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  medley::worker::FuzzExport({reinterpret_cast<const char*>(data), size});
  return 0;
}
