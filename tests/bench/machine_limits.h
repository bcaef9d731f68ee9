// What one core of this machine can do at most, measured: the roof over kernels (Williams, Waterman, Patterson 2009).
#pragma once

#include <cstddef>

namespace medley::worker {

// Float32 operations of one core in a second of processor time; a fused multiplication and addition are two. With the
// widest instructions that the processor has.
double MostFlops();

// Bytes that one core reads and writes in a second of processor time, in loops over `bytes` of memory: the caches have
// their part in it where these are few.
double MostBytes(size_t bytes);

}  // namespace medley::worker
