// Which part of every batch a device takes. A plain value.
#pragma once

#include <cstdint>

namespace medley::worker {

struct BatchShare {
  int layout = 0;     // index into Program::layouts
  int replica = 0;    // index of the device in it
  uint64_t seed = 1;  // of the data's permutation
};

}  // namespace medley::worker
