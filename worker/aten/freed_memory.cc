#include "worker/aten/freed_memory.h"

#include <malloc.h>

namespace medley::worker::aten {

void KeepFreedMemory() {
  static const bool kDone = [] {
    constexpr int kMiB = 1 << 20;
    malloc_trim(0);  // what reading the data has left
    mallopt(M_MMAP_THRESHOLD, 64 * kMiB);
    mallopt(M_TRIM_THRESHOLD, 256 * kMiB);
    return true;
  }();
  static_cast<void>(kDone);
}

}  // namespace medley::worker::aten
