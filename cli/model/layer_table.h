// The operations of a cut as a layer table: what planners read, and `medley profile` fills with estimated times. Pure.
#pragma once

#include <string>

#include "common/model/forward.h"
#include "worker/cut/cut.h"

namespace medley::cli {

// Kinds are those of the modules, in upper case ("CONV2D"). Attributes: flops of a sample's forward pass, calls, and
// activationBytes of a sample. The last layer is the loss.
model::Model LayerTable(const std::string& name, const worker::cut::Cut& cut);

}  // namespace medley::cli
