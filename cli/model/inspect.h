// What `medley model inspect` prints of a model that was exported from PyTorch. Pure.
#pragma once

#include <string>

#include "worker/cut/cut.h"

namespace medley::cli {

// The writer, the inputs, a row for each operation, sums, and what was merged. Operations are numbered from 0, as plans
// do; the loss, which Medley adds, is the last.
std::string InspectText(const worker::cut::Cut& cut);

}  // namespace medley::cli
