// The fuzz target of the watch decoder: no input may crash it, and the result must not depend on the chunk size.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "kube/client/watch_decoder.h"
#include "kube/errors.h"

namespace medley::kube {
namespace {

// The first byte is the chunk size, the rest is the stream.
void FuzzWatchEvent(std::string_view input) {
  if (input.empty()) return;
  const size_t chunk = 1 + static_cast<unsigned char>(input.front()) % 64;
  input.remove_prefix(1);
  const auto decode = [&](size_t size) {
    std::vector<std::string> events;
    WatchDecoder decoder(4096);
    absl::Status status;
    for (size_t at = 0; at < input.size() && status.ok(); at += size) {
      status = decoder.Feed(input.substr(at, size), [&](WatchEvent event) {
        // Calls the accessors that consumers use for any object.
        const Object& object = event.object;
        std::string text = object.kind() + object.key().ToString() + object.resource_version() + object.uid();
        text += std::to_string(object.generation()) + std::to_string(object.owners().size());
        if (event.type == WatchEvent::Type::kError) {
          text += std::to_string(HttpCode(ErrorFromStatusObject(object, "fuzz")));
        }
        events.push_back(text);
        return true;
      });
    }
    return std::make_pair(events, status.code());
  };
  const auto whole = decode(input.size() + 1);
  const auto parts = decode(chunk);
  MEDLEY_CHECK(whole.first == parts.first, "chunks change the events");
  MEDLEY_CHECK(whole.second == parts.second, "chunks change the error");
}

}  // namespace
}  // namespace medley::kube

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  medley::kube::FuzzWatchEvent({reinterpret_cast<const char*>(data), size});
  return 0;
}
