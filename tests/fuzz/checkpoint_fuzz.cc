// The fuzz target of the decoders of a checkpoint: the header of a data file and the manifest. No input may crash them,
// and what they accept reads back as itself. The manifest is also tried with the digest that its text needs.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/hasher.h"
#include "common/base/status.h"
#include "worker/checkpoint/header.h"
#include "worker/checkpoint/layout.h"

namespace medley::worker {
namespace {

void FuzzManifest(std::string_view text) {
  const auto manifest = ParseManifest(text);
  if (!manifest.ok()) return;
  const auto again = ParseManifest(ToJson(*manifest));
  MEDLEY_CHECK(again.ok(), base::ToString(again.status()));
  // A uid that is no UTF-8 is refused by the parser, so the text cannot change what it says.
  MEDLEY_CHECK(*again == *manifest, "a manifest did not read back as itself");
}

void FuzzCheckpoint(std::string_view input) {
  if (const auto length = HeaderLength(input); length.ok()) MEDLEY_CHECK(*length <= kMaxHeader, "a long header");
  if (const auto header = DecodeHeader(input); header.ok()) {
    const auto bytes = EncodeHeader(*header);
    MEDLEY_CHECK(bytes.ok() && *bytes == input, "a header did not read back as itself");
    static_cast<void>(CheckBelongs(*header, FileName(*header), {}));
  }
  FuzzManifest(input);
  base::Hasher hasher;
  hasher.Add(input);
  FuzzManifest(std::string(input) + "xxh3 " + hasher.Hex() + "\n");
}

}  // namespace
}  // namespace medley::worker

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  medley::worker::FuzzCheckpoint({reinterpret_cast<const char*>(data), size});
  return 0;
}
