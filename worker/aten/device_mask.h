// Dropout's masks, computed on a device: the numbers of worker/model/random.h, so a sample has the same mask wherever
// it is trained.
#pragma once

#include <cstdint>

#include "worker/aten/torch.h"
#include "worker/model/random.h"

namespace medley::worker::aten {

// Row i is DropoutMask of `first` with sample + i. Floats in the place of `options`; nothing is copied.
at::Tensor MasksOnDevice(const Draw& first, double keep, int64_t rows, int64_t columns,
                         const at::TensorOptions& options);

}  // namespace medley::worker::aten
