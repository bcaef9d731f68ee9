// The fuzz target of the reader of JSON and YAML: no input may crash it, and what it accepts reads back as itself.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "common/base/status.h"
#include "common/document/parse.h"

namespace medley::document {
namespace {

constexpr Limits kLimits{.bytes = 1 << 16, .depth = 16, .values = 10'000};

void FuzzDocument(std::string_view input) {
  for (const auto& tree : {Parse(input, kLimits), ParseYaml(input, kLimits)}) {
    if (!tree.ok()) continue;
    // Block YAML is larger than its source, so only the limit of bytes is another.
    const auto again = ParseYaml(ToYaml(*tree), {.depth = kLimits.depth, .values = kLimits.values});
    MEDLEY_CHECK(again.ok(), base::ToString(again.status()));
    MEDLEY_CHECK(*again == *tree, "a document did not read back as itself");
  }
  static_cast<void>(ParseYamlStream(input, kLimits));
}

}  // namespace
}  // namespace medley::document

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  medley::document::FuzzDocument({reinterpret_cast<const char*>(data), size});
  return 0;
}
