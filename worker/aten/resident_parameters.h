// A device owns the parameters: weights, optimizer state, the versions that open steps need, the copies of an undo and
// the gradient are tensors in its memory, and updates are computed there (resident_update.h). A step copies none of
// them. Who needs them on the host reads and writes them in pieces.
//
// All parameters are one tensor, in an order that makes what an update treats alike one range: trained ones, copies of
// other operations' parameters, statistics, and those that do not change. Each begins at a multiple of 256 bytes; what
// lies between is zero and stays zero.
#pragma once

#include <memory>
#include <vector>

#include "worker/aten/parameter_store.h"

namespace medley::worker::aten {

// Throws c10::OutOfMemoryError where the device has too little memory.
std::unique_ptr<ParameterStore> MakeResidentParameters(const std::vector<ParameterSpec>& specs,
                                                       const Optimizer& optimizer, uint64_t seed, int kept_updates,
                                                       const Place& place);

}  // namespace medley::worker::aten
