// libFuzzer: watch_event_fuzzer tests/fuzz/corpus/watch_event (built by clang only)
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/watch_event_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  medley::kube::FuzzWatchEvent({reinterpret_cast<const char*>(data), size});
  return 0;
}
