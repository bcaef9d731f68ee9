// Floating-point numbers that are nearer to zero than the smallest normal one (1.2e-38 in single precision).
#pragma once

namespace medley::base {

// From now on they count as zero in this thread and in the threads that it starts from then on, as operands and as
// results. Some processors compute with them many times as slowly. Processors other than x86 and ARM64: no
// effect.
void FlushDenormals();

}  // namespace medley::base
