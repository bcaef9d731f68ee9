// ./dev fuzz 60 aws_spot_feed
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/price_parsers_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  medley::sched::FuzzAwsSpotFeed({reinterpret_cast<const char*>(data), size});
  return 0;
}
