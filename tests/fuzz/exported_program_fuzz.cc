// Exported models: the program's JSON (it begins with a brace) is parsed and divided; a pickle of weights (it begins
// with 0x80); anything else is a zip file.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "worker/cut/cut.h"
#include "worker/exported/pickle.h"
#include "worker/exported/program_json.h"
#include "worker/exported/zip.h"

namespace medley::worker::exported {
namespace {

void Divide(std::string_view json) {
  absl::StatusOr<Program> program = ParseProgram(json, {.most_json_bytes = 1 << 20, .most_nodes = 10'000});
  if (!program.ok()) return;
  const auto shared = std::make_shared<const Program>(*std::move(program));
  (void)cut::Divide(shared, {.depth = 2});
  (void)cut::Divide(shared, {.finest = true});
}

void ReadAll(std::string_view file) {
  const absl::StatusOr<Zip> zip = Zip::Open(std::as_bytes(std::span(file)));
  if (!zip.ok()) return;
  for (const auto& [name, entry] : zip->entries()) (void)zip->Read(name, 1 << 20);
}

}  // namespace
}  // namespace medley::worker::exported

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (text.starts_with('{')) {
    medley::worker::exported::Divide(text);
  } else if (text.starts_with('\x80')) {
    (void)medley::worker::exported::ReadPickledTensors(text);
  } else {
    medley::worker::exported::ReadAll(text);
  }
  return 0;
}
