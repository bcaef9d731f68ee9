// A hash of samples as they were read, before any transform. Pure.
#pragma once

#include <string>
#include <vector>

#include "worker/data/batch.h"

namespace medley::worker {

// 32 hexadecimal digits. `classes`: the names of the classes by their numbers.
std::string DigestOf(const Batch& rows, const std::vector<std::string>& classes);

}  // namespace medley::worker
