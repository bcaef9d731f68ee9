// What a block computes products of matrices and convolutions in: spec.training.precision, as far as the processor or
// the GPU has it. Their results, and all else, are float32.
#pragma once

#include "worker/aten/torch.h"
#include "worker/model/make_block.h"

namespace medley::worker::aten {

// Whether this processor multiplies bfloat16 itself (AVX512-BF16).
bool ProcessorHasBfloat16();

// A CPU without bfloat16 computes in float32, which is faster than to emulate it, and every CPU instead of tf32. `has`:
// ProcessorHasBfloat16(). Pure.
Precision PrecisionOn(at::DeviceType place, Precision wanted, bool has);

// Lets a GPU compute float32 as tf32, or not: for all blocks of the process.
void AllowTf32(bool allowed);

// While it exists, calls of this thread compute in bfloat16 where autocast does so.
class InPrecision {
 public:
  InPrecision(at::DeviceType place, Precision precision);
  ~InPrecision();
  InPrecision(const InPrecision&) = delete;
  InPrecision& operator=(const InPrecision&) = delete;

 private:
  const at::DeviceType place_;
  const bool on_;
};

}  // namespace medley::worker::aten
