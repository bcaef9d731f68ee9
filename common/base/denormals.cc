#include "common/base/denormals.h"

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace medley::base {

void FlushDenormals() {
#if defined(__x86_64__)
  constexpr unsigned kResultsAreZero = 0x8000, kOperandsAreZero = 0x0040;
  _mm_setcsr(_mm_getcsr() | kResultsAreZero | kOperandsAreZero);
#elif defined(__aarch64__)
  constexpr uint64_t kBothAreZero = uint64_t{1} << 24;
  uint64_t control = 0;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  asm volatile("msr fpcr, %0" : : "r"(control | kBothAreZero));
#endif
}

}  // namespace medley::base
